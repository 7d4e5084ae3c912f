/**
 * Sends and checks codes from a page, by a publishable key. Whatever the service or the network says is a
 * value: nothing here throws.
 */
import type { AltchaChallenge } from './proof-of-work.ts'

export type Channel = 'sms' | 'email'

export type Challenge =
  | { kind: 'altcha'; challenge: AltchaChallenge }
  | { kind: 'turnstile' | 'hcaptcha'; siteKey: string }

export interface SendRequest {
  channel: Channel
  to: string
  scene?: string | undefined
  locale?: string | undefined
  /** The answer to a challenge that was asked for. */
  challenge?: string | undefined
  /** A repeat under the same key sends nothing twice. */
  idempotencyKey?: string | undefined
}

export interface CheckRequest {
  channel: Channel
  to: string
  scene?: string | undefined
  code: string
  /** With it only the code of that very request passes. */
  id?: string | undefined
  challenge?: string | undefined
}

export interface Sent {
  id: string
  channel: Channel
  /** Masked. */
  to: string
  scene: string
  state: 'pending'
  expiresAt: string
  resendAt: string
  codeLength: number
}

export interface Passed {
  verified: true
  id: string
  scene: string
  verifiedAt: string
  /** For the site's own server. */
  pass?: string
}

/** What went wrong, told apart by `code`. `detail` is the service's sentence, in the browser's language. */
export type Problem = { detail?: string } & (
  | { code: 'invalid_request'; errors: { path: string; message: string }[] }
  | { code: 'challenge_required'; challenge: Challenge }
  | { code: 'limited' | 'locked'; policy: string; rule: string; retryAfterMs: number }
  | { code: 'code_mismatch'; triesLeft: number }
  | {
      code:
        | 'code_gone'
        | 'invalid_recipient'
        | 'destination_not_allowed'
        | 'unauthorized'
        | 'forbidden'
        | 'idempotency_in_progress'
        | 'idempotency_key_reused'
    }
  /** The service, or what stands before it. */
  | { code: 'unavailable' | 'internal'; retryAfterMs: number }
  /** The browser has no network. */
  | { code: 'offline' }
  /** No answer: the network, the address, or an origin that the key does not list. */
  | { code: 'unreachable' }
)

export type Result<Answer> = { ok: true; answer: Answer } | { ok: false; problem: Problem }

export type PosternClient = ReturnType<typeof createPosternClient>

const timeoutMs = 15_000
const defaultRetryAfterMs = 2_000

/** `src`: where the service is. `key`: a publishable one (`ppk_…`). */
export function createPosternClient({ src, key }: { src: string; key: string }) {
  const base = src.replace(/\/+$/, '')

  async function post<Answer>(
    path: string,
    body: object,
    idempotencyKey?: string,
  ): Promise<Result<Answer>> {
    try {
      const response = await fetch(base + path, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          ...(idempotencyKey ? { 'idempotency-key': idempotencyKey } : {}),
        },
        body: JSON.stringify(body),
        credentials: 'omit',
        signal: AbortSignal.timeout(timeoutMs),
      })
      const answer: unknown = await response.json().catch(() => null)
      if (response.ok && answer) return { ok: true, answer: answer as Answer }
      return { ok: false, problem: problemOf(response, answer as { code?: unknown } | null) }
    } catch {
      const { navigator } = globalThis as { navigator?: { onLine?: boolean } }
      const code = navigator?.onLine === false ? 'offline' : 'unreachable'
      return { ok: false, problem: { code } }
    }
  }

  return {
    send: ({ idempotencyKey, ...body }: SendRequest) =>
      post<Sent>('/v1/captchas', body, idempotencyKey),

    check: (body: CheckRequest) => post<Passed>('/v1/captchas/check', body),
  }
}

/** What stands between may answer as it likes. */
function problemOf({ status, headers }: Response, answer: { code?: unknown } | null): Problem {
  const retryAfterMs = Number(headers.get('retry-after')) * 1_000 || defaultRetryAfterMs
  if (typeof answer?.code === 'string') return { retryAfterMs, ...answer } as unknown as Problem
  return { code: status < 500 && status !== 429 ? 'internal' : 'unavailable', retryAfterMs }
}
