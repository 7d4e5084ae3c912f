import type { Secrets } from '../base/secrets.ts'
import type { RedisLimiter } from '../limiter/index.ts'
import {
  type AdmissionRefusal,
  admit,
  limitFields,
  nextAdmissionInMs,
  type Origin,
  peekNextInMs,
} from './admission.ts'
import {
  type CreateNotice,
  type FindNotice,
  type Params,
  type PreparedNotice,
  prepareNotice,
  type ReservedNotice,
} from './create.ts'

export interface NoticeRequest {
  reserved?: ReservedNotice
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
  | { accepted: false; refusal: AdmissionRefusal }

export type SendNotice = ReturnType<typeof createSendNotice>

/** Sends a notice: limits, then the row. The story is captcha/send.ts without a code. */
export function createSendNotice(deps: {
  limiter: RedisLimiter
  createNotice: CreateNotice
  findNotice: FindNotice
  secrets: Secrets
  ttlMs: number
  now: () => number
}) {
  const { limiter, createNotice, findNotice, secrets, now } = deps

  /** Throws Unavailable when Redis or PostgreSQL is out of reach; nothing was taken then. */
  return async function sendNotice(request: NoticeRequest): Promise<SendNoticeOutcome> {
    const { params, origin, reserved, ttlMs = deps.ttlMs, ...facts } = request
    const draft = { ...facts, kind: 'notice', ttlMs } as const
    const notice = prepareNotice(reserved ? { ...draft, id: reserved.id } : draft, now())
    const fields = limitFields(notice, params, origin, secrets)

    // The promise was made before, only its answer was lost.
    const earlier = reserved?.isTakenOver ? await findNotice(notice.app, notice.id) : null
    if (earlier) {
      const { createdAt, expiresAt } = earlier
      const resendInMs = await peekNextInMs(limiter, 'notice', fields)
      return {
        accepted: true,
        notice: { ...notice, createdAt, expiresAt },
        resendAt: new Date(now() + resendInMs),
      }
    }

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
