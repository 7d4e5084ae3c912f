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
  /** For so long no code is compared here, this one neither. */
  lockedForMs?: number
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
  | { code: 'code_mismatch'; triesLeft: number; lockedForMs?: number }
  /** `origin`: no key, or not this one, lists the page's origin. */
  | { code: 'forbidden'; reason?: 'origin' }
  | {
      code:
        | 'code_gone'
        | 'invalid_recipient'
        | 'destination_not_allowed'
        | 'unauthorized'
        | 'idempotency_in_progress'
        | 'idempotency_key_reused'
    }
  /** The service, or what stands before it. */
  | { code: 'unavailable' | 'internal'; retryAfterMs: number }
  /** The browser has no network. */
  | { code: 'offline' }
  /** No answer: the network, the address, or the page's own Content-Security-Policy. */
  | { code: 'unreachable' }
)

export type Result<Answer> = { ok: true; answer: Answer } | { ok: false; problem: Problem }

export type PosternClient = ReturnType<typeof createPosternClient>

const timeoutMs = 15_000
const whyTimeoutMs = 3_000
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
    } catch (error) {
      return { ok: false, problem: await whyNothing(base + path, error) }
    }
  }

  return {
    send: ({ idempotencyKey, ...body }: SendRequest) =>
      post<Sent>('/v1/captchas', body, idempotencyKey),

    check: (body: CheckRequest) => post<Passed>('/v1/captchas/check', body),
  }
}

/**
 * Browsers keep a refused preflight from the page: it looks like no answer. So the page asks what needs no
 * preflight, and reads whether its origin is the reason.
 */
async function whyNothing(url: string, error: unknown): Promise<Problem> {
  const { navigator } = globalThis as { navigator?: { onLine?: boolean } }
  if (navigator?.onLine === false) return { code: 'offline' }
  try {
    // A question that was too slow once is not asked again.
    if ((error as Error).name !== 'TypeError') return { code: 'unreachable' }
    const signal = AbortSignal.timeout(whyTimeoutMs)
    const response = await fetch(url, { credentials: 'omit', signal })
    const problem = problemOf(response, (await response.json()) as { code?: unknown })
    return problem.code === 'forbidden' ? problem : { code: 'unreachable' }
  } catch {
    return { code: 'unreachable' }
  }
}

/** What stands between may answer as it likes. */
function problemOf({ status, headers }: Response, answer: { code?: unknown } | null): Problem {
  const retryAfterMs = Number(headers.get('retry-after')) * 1_000 || defaultRetryAfterMs
  if (typeof answer?.code === 'string') return { retryAfterMs, ...answer } as unknown as Problem
  return { code: status < 500 && status !== 429 ? 'internal' : 'unavailable', retryAfterMs }
}
