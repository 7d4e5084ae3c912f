import type { Request, RequestHandler, Response } from 'express'
import { type Limiter, LimiterUnavailable, type Refusal } from './limiter.ts'
import type { Fields } from './plan.ts'
import { rateLimitHeaders } from './rate-limit-headers.ts'

/**
 * Express middleware: passes what the policy admits, answers the rest with 429 problem+json and the
 * headers of `rateLimitHeaders`, and with 503 when Redis is out of reach. Anything else goes to `next`.
 */
export function limit(
  limiter: Limiter,
  policy: string,
  fieldsOf: (req: Request) => Fields,
): RequestHandler {
  return async (req, res, next) => {
    try {
      const decision = await limiter.acquire(policy, fieldsOf(req))
      res.set(rateLimitHeaders(policy, decision, limiter.windows(policy)))
      if (decision.admitted) next()
      else refuse(req, res, policy, decision)
    } catch (error) {
      if (!(error instanceof LimiterUnavailable)) return next(error)
      const detail = inLanguage(req, 'Try again in a moment.', '请稍后再试。')
      res.set('Retry-After', '1')
      problem(res, 503, 'Service Unavailable', { code: 'unavailable', detail })
    }
  }
}

function refuse(req: Request, res: Response, policy: string, refusal: Refusal): void {
  const { rule, window, kind, retryAfterMs, message } = refusal
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1_000))
  const isLocked = kind === 'lockout'
  problem(res, 429, 'Too Many Requests', {
    code: isLocked ? 'locked' : 'limited',
    detail:
      message ??
      (isLocked
        ? inLanguage(req, `Locked for ${seconds} s.`, `已锁定，请在 ${seconds} 秒后再试。`)
        : inLanguage(req, `Try again in ${seconds} s.`, `请在 ${seconds} 秒后再试。`)),
    policy,
    rule,
    ...(isLocked ? {} : { window }),
    retryAfterMs,
  })
}

function problem(res: Response, status: number, title: string, members: object): void {
  res
    .status(status)
    .type('application/problem+json')
    .send(JSON.stringify({ type: 'about:blank', title, status, ...members }))
}

function inLanguage(req: Request, english: string, chinese: string): string {
  return req.acceptsLanguages('en', 'zh') === 'zh' ? chinese : english
}
