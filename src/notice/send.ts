import type { Secrets } from '../base/secrets.ts'
import type { RedisLimiter, Refusal } from '../limiter/index.ts'
import { admit, limitFields, nextAdmissionInMs, type Origin } from './admission.ts'
import { type CreateNotice, type Params, type PreparedNotice, prepareNotice } from './create.ts'

export interface NoticeRequest {
  /** From an Idempotency-Key's reservation. */
  id?: string
  app: string
  channel: 'sms' | 'email'
  to: string
  template: string
  locale: string
  params: Params
  /** Not sent after it; the policy file's default when absent. */
  ttlMs?: number
  /** Not sent before it. */
  sendAt?: Date
  origin: Origin
}

export type SendNoticeOutcome =
  | { accepted: true; notice: PreparedNotice; resendAt: Date }
  | { accepted: false; refusal: Refusal }

export type SendNotice = ReturnType<typeof createSendNotice>

/** Sends a notice: limits, then the row. The story is captcha/send.ts without a code. */
export function createSendNotice(deps: {
  limiter: RedisLimiter
  createNotice: CreateNotice
  secrets: Secrets
  ttlMs: number
  now: () => number
}) {
  const { limiter, createNotice, secrets, now } = deps

  /** Throws Unavailable when Redis or PostgreSQL is out of reach; nothing was taken then. */
  return async function sendNotice(request: NoticeRequest): Promise<SendNoticeOutcome> {
    const { params, origin, ttlMs = deps.ttlMs, ...draft } = request
    const notice = prepareNotice({ ...draft, kind: 'notice', ttlMs }, now())
    const fields = limitFields(notice, params, origin, secrets)

    const verdict = await admit(limiter, 'notice', fields, notice.id)
    if (!verdict.admitted) return { accepted: false, refusal: verdict }

    try {
      await createNotice(notice, params)
    } catch (error) {
      await limiter.release('notice', fields, notice.id).catch(() => {})
      throw error
    }
    const resendInMs = await nextAdmissionInMs(limiter, 'notice', fields, verdict)
    return { accepted: true, notice, resendAt: new Date(notice.createdAt.getTime() + resendInMs) }
  }
}
