/** Express middleware. Its types require only the members that it uses, so other frameworks fit too. */
import { limitableAddress, wideAddress } from '../../base/limitable-address.ts'
import { timeInWords } from '../../base/time-in-words.ts'
import { InvalidPermits, LimiterUnavailable, MissingField } from '../errors.ts'
import type { Limiter, Refusal } from '../limiter.ts'
import type { Fields } from '../policy/rule.ts'
import { rateLimitHeaders, rateLimitProblem } from './headers.ts'

/** The members of a request that the middleware reads. The default when the framework's type is not given. */
export interface LimitedRequest {
  readonly ip?: string | undefined
  // biome-ignore lint/suspicious/noExplicitAny: as in Express: the result of any parser
  readonly body?: any
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

/** Responses of Express and of `node:http` have this shape. */
export interface LimitedResponse {
  statusCode: number
  setHeader(name: string, value: string): unknown
  end(body?: string): unknown
}

type Next = (error?: unknown) => void

export interface RateLimitOptions<Req, Res> {
  /** A request for which this returns true is not limited. */
  readonly skip?: ((req: Req) => boolean | Promise<boolean>) | undefined
  /** The `detail` of a refusal. By default the rule's `message`, otherwise a sentence with the wait. */
  readonly message?: string | ((refusal: Refusal, req: Req) => string) | undefined
  /** Answers a refusal instead of the default 429. The headers are already set. */
  readonly handler?: ((req: Req, res: Res, next: Next, refusal: Refusal) => unknown) | undefined
}

/**
 * The text by which an address is counted: the /64 or /48 of an IPv6 address. IPv4 inside IPv6 becomes IPv4. Any other text
 * is unchanged.
 */
export function limiterKeyOfIp<Ip extends string | undefined>(
  ip: Ip,
  prefix: 64 | 48 = 64,
): Ip | string {
  if (ip === undefined) return ip
  const counted = limitableAddress(ip) ?? ip
  return prefix === 48 ? wideAddress(counted) : counted
}

/**
 * Middleware that passes admitted requests on. A refusal is answered with 429, problem+json and the headers of
 * `rateLimitHeaders`. If Redis does not answer, the answer is 503.
 *
 * A request with an unusable value for a field of `fieldsOf` gets 400 with the name of the field. All other errors go
 * to `next`. A field that `fieldsOf` forgot is such an error, because no other request would help. The field `ip` is
 * counted by `limiterKeyOfIp`.
 */
export function rateLimit<Req = LimitedRequest, Res extends LimitedResponse = LimitedResponse>(
  limiter: Limiter,
  policy: string,
  fieldsOf: (req: Req) => Fields,
  options: RateLimitOptions<Req, Res> = {},
): (req: Req, res: Res, next: Next) => Promise<void> {
  const { skip, message, handler } = options
  // An unknown policy throws when the program starts, and not at the first request.
  limiter.windows(policy)

  /** True if the request may go on. Otherwise it is already answered. */
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
    // Outside of the try, so that an error of the next handler is not passed to it a second time.
    next()
  }
}

function withAddress({ ip, ...fields }: Fields): Fields {
  return typeof ip === 'string' ? { ...fields, ip: limiterKeyOfIp(ip) } : fields
}

/** The members of the problem for a 400. Undefined if the error is not about a value that `fieldsOf` returned. */
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
  const time = timeInWords(retryAfterMs, 'en')
  const isLocked = kind === 'lockout'
  const words = isLocked ? `Locked. Try again in ${time}.` : `Try again in ${time}.`
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
