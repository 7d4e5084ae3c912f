/** Express middleware; its types ask for nothing but what it uses of a request and an answer. */
import { limitableAddress } from '../../base/limitable-address.ts'
import { InvalidPermits, LimiterUnavailable, MissingField } from '../errors.ts'
import type { Limiter, Refusal } from '../limiter.ts'
import type { Fields } from '../policy/rule.ts'
import { rateLimitHeaders, rateLimitProblem } from './headers.ts'

/** What middleware may read of a request where its framework's own type is not known. */
export interface LimitedRequest {
  readonly ip?: string | undefined
  // biome-ignore lint/suspicious/noExplicitAny: as in Express, whatever a parser has made of it
  readonly body?: any
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

/** An Express response is one, and so is that of `node:http`. */
export interface LimitedResponse {
  statusCode: number
  setHeader(name: string, value: string): unknown
  end(body?: string): unknown
}

type Next = (error?: unknown) => void

export interface RateLimitOptions<Req, Res> {
  /** True: this request is not limited. */
  readonly skip?: ((req: Req) => boolean | Promise<boolean>) | undefined
  /** The `detail` of a refusal in place of the rule's `message` or ours. */
  readonly message?: string | ((refusal: Refusal, req: Req) => string) | undefined
  /** Answers a refusal in place of the 429. The headers are set already. */
  readonly handler?: ((req: Req, res: Res, next: Next, refusal: Refusal) => unknown) | undefined
}

/** What an address counts as: an IPv4 address itself, of an IPv6 address its /64; other text as it is. */
export function limiterKeyOfIp<Ip extends string | undefined>(ip: Ip): Ip | string {
  return ip === undefined ? ip : (limitableAddress(ip) ?? ip)
}

/**
 * Passes what the policy admits, answers the rest with 429 problem+json and the headers of
 * `rateLimitHeaders`, and with 503 when Redis is out of reach. A request without a usable value for a field
 * that `fieldsOf` names gets 400 with the name of the field. Anything else goes to `next`, a field that
 * `fieldsOf` does not name included: no request can mend that. A field named `ip` counts as
 * `limiterKeyOfIp` says.
 */
export function rateLimit<Req = LimitedRequest, Res extends LimitedResponse = LimitedResponse>(
  limiter: Limiter,
  policy: string,
  fieldsOf: (req: Req) => Fields,
  options: RateLimitOptions<Req, Res> = {},
): (req: Req, res: Res, next: Next) => Promise<void> {
  const { skip, message, handler } = options
  // A policy that is not there is told now, not to the first visitor.
  limiter.windows(policy)

  /** True if the request may go on; else it is answered. */
  async function passes(req: Req, res: Res, next: Next): Promise<boolean> {
    if (await skip?.(req)) return true
    const given = fieldsOf(req)
    const decision = await limiter.acquire(policy, withAddress(given)).catch((error: unknown) => {
      const fault = faultOfRequest(error, given)
      if (!fault) throw error
      problem(res, 400, fault)
    })
    if (!decision) return false
    const headers = rateLimitHeaders(policy, decision, limiter.windows(policy))
    for (const [name, value] of Object.entries(headers)) res.setHeader(name, value)
    if (decision.admitted) return true
    if (handler) {
      await handler(req, res, next, decision)
      return false
    }
    const own = typeof message === 'function' ? message(decision, req) : message
    problem(res, 429, refusalMembers(policy, decision, own))
    return false
  }

  return async (req, res, next) => {
    try {
      if (!(await passes(req, res, next))) return
    } catch (error) {
      if (!(error instanceof LimiterUnavailable)) return next(error)
      res.setHeader('Retry-After', '1')
      return problem(res, 503, { title: 'Service Unavailable', code: 'unavailable' })
    }
    // Behind the try: what the next handler throws is not told to it once more.
    next()
  }
}

function withAddress({ ip, ...fields }: Fields): Fields {
  return typeof ip === 'string' ? { ...fields, ip: limiterKeyOfIp(ip) } : fields
}

/** The members of a 400, if the error is about the value of a field that `fieldsOf` took from the request. */
function faultOfRequest(error: unknown, given: Fields): object | undefined {
  if (!(error instanceof MissingField || error instanceof InvalidPermits)) return undefined
  const { field } = error
  if (field === undefined || !Object.hasOwn(given, field)) return undefined
  const [message, detail] =
    error instanceof MissingField
      ? [error.problem, `The field ${field} ${error.problem}.`]
      : [error.message, `${error.message}.`]
  const errors = [{ path: field, message }]
  return { title: 'Bad Request', code: 'invalid_request', detail, errors }
}

function refusalMembers(policy: string, refusal: Refusal, message: string | undefined) {
  const { rule, window, kind, retryAfterMs, challenge } = refusal
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1_000))
  const isLocked = kind === 'lockout'
  const words = isLocked ? `Locked for ${seconds} s.` : `Try again in ${seconds} s.`
  return {
    ...rateLimitProblem(policy, refusal),
    title: 'Too Many Requests',
    code: challenge ? 'challenge_required' : isLocked ? 'locked' : 'limited',
    detail: message ?? refusal.message ?? words,
    policy,
    rule,
    ...(isLocked ? {} : { window }),
    retryAfterMs,
  }
}

function problem(res: LimitedResponse, status: number, members: object): void {
  res.statusCode = status
  res.setHeader('Content-Type', 'application/problem+json')
  res.end(JSON.stringify({ type: 'about:blank', status, ...members }))
}
