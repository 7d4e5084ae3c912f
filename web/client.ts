/**
 * Sends and checks codes from a page with a publishable key. Network errors are returned too: nothing throws.
 *
 * After a right code, the service answers a token that makes this browser a known one for the address: strangers then use
 * up none of its limits. The token is kept, and sent with later requests for the address. It outlives the tab. Its name has
 * only a short hash of the address, because the address must not outlive the tab.
 */
import type { Channel } from './channels.ts'
import type { AltchaChallenge } from './proof-of-work.ts'
import { claimsOf } from './readings.ts'

export type { Channel }

export type Challenge =
  | { kind: 'altcha'; challenge: AltchaChallenge }
  | { kind: 'turnstile' | 'hcaptcha'; siteKey: string }

export interface SendRequest {
  channel: Channel
  to: string
  scene?: string | undefined
  locale?: string | undefined
  /** The answer to the challenge of a previous request. */
  challenge?: string | undefined
  /** A repeat with the same key sends nothing twice. */
  idempotencyKey?: string | undefined
}

/** A send by the ways of a workflow. */
export interface WorkflowRequest extends Omit<SendRequest, 'channel'> {
  workflow: string
  /** The address of the ways by mail. */
  email?: string | undefined
}

export interface NextRequest {
  /** The id of the verification. */
  id: string
  challenge?: string | undefined
  idempotencyKey?: string | undefined
}

export interface CheckRequest {
  channel: Channel
  to: string
  scene?: string | undefined
  code: string
  /** The id of a send. If present, only the code of that send passes. */
  id?: string | undefined
  challenge?: string | undefined
}

/** A check of the code of any way of a verification. */
export type CheckWaysRequest = Pick<CheckRequest, 'code' | 'challenge'> & { id: string }

export interface Sent {
  id: string
  channel: Channel
  /** The recipient, masked. */
  to: string
  scene: string
  state: 'pending'
  expiresAt: string
  resendAt: string
  codeLength: number
  /** Time for which the service compares no code of this recipient, including this one. */
  lockedForMs?: number
}

/** `next`: the channel that the next way would have. */
export interface Way {
  channel: Channel
  index: number
  of: number
  next?: Channel
}

/** `id`: of the verification. */
export interface SentWay extends Omit<Sent, 'channel'> {
  workflow: string
  way: Way
}

export interface Passed {
  verified: true
  id: string
  scene: string
  verifiedAt: string
  /** A proof for the server of the site. */
  pass?: string
}

/** An error, named by `code`. `detail` is a sentence of the service in the language of the browser. */
export type Problem = { detail?: string } & (
  | { code: 'invalid_request'; errors: { path: string; message: string }[] }
  | { code: 'challenge_required'; challenge: Challenge }
  | { code: 'limited' | 'locked'; policy: string; rule: string; retryAfterMs: number }
  | { code: 'code_mismatch'; triesLeft: number; lockedForMs?: number }
  /** `origin`: this key does not list the origin of the page. */
  | { code: 'forbidden'; reason?: 'origin' }
  | {
      code:
        | 'code_gone'
        | 'no_more_ways'
        | 'not_found'
        | 'invalid_recipient'
        | 'destination_not_allowed'
        | 'unauthorized'
        | 'idempotency_in_progress'
        | 'idempotency_key_reused'
    }
  /** An error of the service or of a proxy in front of it. */
  | { code: 'unavailable' | 'internal'; retryAfterMs: number }
  /** The browser has no network. */
  | { code: 'offline' }
  /** No answer. Causes: the network, a wrong address, or the Content-Security-Policy of the page. */
  | { code: 'unreachable' }
)

export type Result<Answer> = { ok: true; answer: Answer } | { ok: false; problem: Problem }

export type PosternClient = ReturnType<typeof createPosternClient>

const timeoutMs = 15_000
const whyTimeoutMs = 3_000
const defaultRetryAfterMs = 2_000

/** The address of the service, to which a path can be added. */
export const baseOf = (src: string) => src.replace(/\/+$/, '')

/** `src`: the address of the service. `key`: a publishable key (`ppk_…`). */
export function createPosternClient({ src, key }: { src: string; key: string }) {
  const base = baseOf(src)

  async function post<Answer>(
    path: string,
    body: object,
    to = '',
    idempotencyKey?: string,
    known = knownOf(key, to),
  ): Promise<Result<Answer>> {
    try {
      const response = await fetch(base + path, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          ...(idempotencyKey ? { 'idempotency-key': idempotencyKey } : {}),
        },
        body: JSON.stringify({ ...body, known: known || undefined }),
        credentials: 'omit',
        signal: AbortSignal.timeout(timeoutMs),
      })
      const answer: unknown = await response.json().catch(() => null)
      if (response.ok && answer) {
        keep(key, to, answer)
        return { ok: true, answer: answer as Answer }
      }
      // A service of an older version does not accept the token.
      if (known && response.status === 400) return post(path, body, to, idempotencyKey, '')
      return { ok: false, problem: problemOf(response, answer as { code?: unknown } | null) }
    } catch (error) {
      return { ok: false, problem: await whyNothing(base + path, error) }
    }
  }

  return {
    send: <Asked extends SendRequest | WorkflowRequest>({ idempotencyKey, ...body }: Asked) =>
      post<Asked extends WorkflowRequest ? SentWay : Sent>(
        '/v1/captchas',
        body,
        body.to,
        idempotencyKey,
      ),

    /** `to`: the number of a verification, for the token of this browser. */
    check: (body: CheckRequest | CheckWaysRequest, to = (body as CheckRequest).to) =>
      post<Passed>('/v1/captchas/check', body, to),

    /** Begins the next way of a verification. */
    next: ({ id, idempotencyKey, ...body }: NextRequest) =>
      post<SentWay>(`/v1/captchas/${id}/next`, body, '', idempotencyKey),

    /** The way that began last. */
    way: (id: string) => post<SentWay>(`/v1/captchas/${id}/way`, {}),
  }
}

/** The name of the token. Two addresses may share one, because a token of another address is no error. */
function nameOf(key: string, to: string): string {
  let hash = 0
  for (const letter of key + to) hash = (hash * 31 + letter.charCodeAt(0)) | 0
  return `postern ${hash}`
}

function knownOf(key: string, to: string): string {
  try {
    return (to && localStorage.getItem(nameOf(key, to))) ?? ''
  } catch {
    // The browser forbids storage. Then it is a stranger.
    return ''
  }
}

function keep(key: string, to: string, answer: { known?: string; pass?: string }): void {
  try {
    // A pass by mail proves no number.
    const isOwn = to.includes('@') || claimsOf(answer.pass).channel !== 'email'
    if (to && answer.known && isOwn) localStorage.setItem(nameOf(key, to), answer.known)
  } catch {}
}

/**
 * Finds why no answer arrived. Browsers hide a refused preflight from the page. So this sends a request that needs no
 * preflight; its answer shows whether the origin is the reason.
 */
async function whyNothing(url: string, error: unknown): Promise<Problem> {
  const { navigator } = globalThis as { navigator?: { onLine?: boolean } }
  if (navigator?.onLine === false) return { code: 'offline' }
  try {
    // After a timeout, a second request would only wait again.
    if ((error as Error).name !== 'TypeError') return { code: 'unreachable' }
    const signal = AbortSignal.timeout(whyTimeoutMs)
    const response = await fetch(url, { credentials: 'omit', signal })
    const problem = problemOf(response, (await response.json()) as { code?: unknown })
    return problem.code === 'forbidden' ? problem : { code: 'unreachable' }
  } catch {
    return { code: 'unreachable' }
  }
}

/** Accepts any body, because a proxy may have sent the answer. */
function problemOf({ status, headers }: Response, answer: { code?: unknown } | null): Problem {
  const retryAfterMs = Number(headers.get('retry-after')) * 1_000 || defaultRetryAfterMs
  if (typeof answer?.code === 'string') return { retryAfterMs, ...answer } as unknown as Problem
  return { code: status < 500 && status !== 429 ? 'internal' : 'unavailable', retryAfterMs }
}
