/**
 * The HTTP calls as functions, for host apps and plugins: the same checks, limits, rows and records, without a key.
 * Every expected result is a value; only an unexpected error is thrown.
 */
import { z } from 'zod'
import { Problem, Unavailable } from '../base/problems.ts'
import type { CheckCaptcha, CheckOutcome } from '../captcha/check.ts'
import type { SendCaptcha } from '../captcha/send.ts'
import type { SendOutcome } from '../notice/message.ts'
import type { SendNotice } from '../notice/send.ts'
import type { Caller } from '../rules/quota.ts'
import type { Limited } from '../rules/refused.ts'
import { checked } from './body.ts'
import { checkCaptchaBody, sendCaptchaBody } from './captchas.ts'
import { sendNoticeBody } from './notices.ts'
import type { UnderWay } from './under-way.ts'

/** The name of an app, as in keys. */
const app = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,31}$/, 'is a short lower-case name')
const idempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, 'is 1 to 255 visible ASCII characters')
  .optional()

/** Calls in process never get a challenge. */
const captchaInput = sendCaptchaBody.omit({ challenge: true }).extend({ app, idempotencyKey })
const checkInput = checkCaptchaBody.omit({ challenge: true }).extend({ app })
const noticeInput = sendNoticeBody.extend({ app, idempotencyKey })

/** `outcome` is `accepted`, `passed` or the error code that HTTP would answer, with the members of that answer. */
export type CallOutcome<Outcome> =
  | Exclude<Outcome, Limited>
  | Pick<Limited, 'outcome' | 'policy' | 'rule' | 'window' | 'retryAfterMs' | 'message'>
  /** Redis or PostgreSQL is out of reach, or this Postern is closed. Nothing was taken. */
  | { outcome: 'unavailable' }

/**
 * The fields of the HTTP body, and the `app`. `ip` is the person's address. Calls without it share one count in limits
 * by address.
 */
export interface PosternCalls {
  sendCaptcha(asked: z.input<typeof captchaInput>): Promise<CallOutcome<SendOutcome>>
  checkCaptcha(asked: z.input<typeof checkInput>): Promise<CallOutcome<CheckOutcome>>
  sendNotice(asked: z.input<typeof noticeInput>): Promise<CallOutcome<SendOutcome>>
}

export function createCalls(deps: {
  sendCaptcha: SendCaptcha
  checkCaptcha: CheckCaptcha
  sendNotice: SendNotice
  underWay: UnderWay
}): PosternCalls {
  const { sendCaptcha, checkCaptcha, sendNotice, underWay } = deps

  /** A call with any fields, because callers in JavaScript have no types. */
  const inProcess =
    <Input extends { app: string }, Outcome extends { outcome: string }>(
      schema: z.ZodType<Input>,
      work: (asked: Omit<Input, 'app'>, caller: Caller) => Promise<Outcome>,
    ) =>
    async (given: unknown): Promise<CallOutcome<Outcome>> => {
      if (!underWay.begin()) return { outcome: 'unavailable' }
      try {
        const { app, ...asked } = checked(schema, given, '') as Input
        return shown(
          await work(asked, { app, keyId: inProcessKey, ip: '', isPage: false, origins: [] }),
        )
      } catch (error) {
        if (error instanceof Unavailable) return { outcome: 'unavailable' }
        if (error instanceof Problem) return { outcome: error.code, ...error.members } as never
        throw error
      } finally {
        underWay.end()
      }
    }

  // Plugins share this object.
  return Object.freeze({
    sendCaptcha: inProcess(captchaInput, sendCaptcha),
    checkCaptcha: inProcess(checkInput, checkCaptcha),
    sendNotice: inProcess(noticeInput, sendNotice),
  })
}

/** Rules may count by `{keyId}`. No key has this id. */
const inProcessKey = 'in-process'

/** A refusal without the limiter's internal members. */
function shown<Outcome extends { outcome: string }>(made: Outcome): CallOutcome<Outcome> {
  if (made.outcome !== 'limited' && made.outcome !== 'locked') return made as never
  const { outcome, policy, rule, window, retryAfterMs, message } = made as unknown as Limited
  return { outcome, policy, rule, window, retryAfterMs, ...(message ? { message } : {}) }
}
