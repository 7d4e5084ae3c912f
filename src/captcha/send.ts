/**
 * Sends a code. The order is the design: first the limits, because a refusal must cost nothing; then
 * the code, because a code must never be sent before it can pass; last the row, whose commit is the
 * promise. When the code or the row can't be written, the quota is given back.
 */
import type { Secrets } from '../base/secrets.ts'
import type { RedisLimiter, Refusal } from '../limiter/index.ts'
import { admit, limitFields, nextAdmissionInMs, type Origin } from '../notice/admission.ts'
import {
  type CreateNotice,
  type Params,
  type PreparedNotice,
  prepareNotice,
} from '../notice/create.ts'
import { drawCode } from './code.ts'
import type { CodeStore } from './code-store.ts'

export interface CaptchaRequest {
  /** From an Idempotency-Key's reservation. */
  id?: string
  app: string
  channel: 'sms' | 'email'
  to: string
  scene: string
  template: string
  locale: string
  params: Params
  origin: Origin
}

export type SendCaptchaOutcome =
  | { accepted: true; notice: PreparedNotice; resendAt: Date; codeLength: number }
  | { accepted: false; refusal: Refusal }

export type SendCaptcha = ReturnType<typeof createSendCaptcha>

export function createSendCaptcha(deps: {
  limiter: RedisLimiter
  codes: CodeStore
  createNotice: CreateNotice
  secrets: Secrets
  code: { length: number; ttlMs: number }
  now: () => number
}) {
  const { limiter, codes, createNotice, secrets, code, now } = deps

  /** Throws Unavailable when Redis or PostgreSQL is out of reach; nothing was taken then. */
  return async function sendCaptcha(request: CaptchaRequest): Promise<SendCaptchaOutcome> {
    const { params, origin, ...draft } = request
    const notice = prepareNotice({ ...draft, kind: 'captcha', ttlMs: code.ttlMs }, now())
    const fields = limitFields(notice, params, origin, secrets)

    const verdict = await admit(limiter, 'captcha', fields, notice.id)
    if (!verdict.admitted) return { accepted: false, refusal: verdict }

    try {
      const digits = drawCode(code.length)
      await codes.remember(request, notice.id, digits)
      await createNotice(notice, {
        ...params,
        code: digits,
        minutes: Math.ceil(code.ttlMs / 60_000),
      })
    } catch (error) {
      // Each is best effort: what is out of reach now ends by its own time to live.
      await Promise.allSettled([
        codes.forget(request, notice.id),
        limiter.release('captcha', fields, notice.id),
      ])
      throw error
    }
    const resendInMs = await nextAdmissionInMs(limiter, 'captcha', fields, verdict)
    return {
      accepted: true,
      notice,
      resendAt: new Date(notice.createdAt.getTime() + resendInMs),
      codeLength: code.length,
    }
  }
}
