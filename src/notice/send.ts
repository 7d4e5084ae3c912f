import type { Admission, AdmissionRefusal, Origin } from './admission.ts'
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
  admission: Admission
  createNotice: CreateNotice
  findNotice: FindNotice
  ttlMs: number
  now: () => number
}) {
  const { admission, createNotice, findNotice, now } = deps

  /** Throws Unavailable when Redis or PostgreSQL is out of reach; nothing was taken then. */
  return async function sendNotice(request: NoticeRequest): Promise<SendNoticeOutcome> {
    const { params, origin, reserved, ttlMs = deps.ttlMs, ...facts } = request
    const draft = { ...facts, kind: 'notice', ttlMs } as const
    const fields = admission.fieldsOf(draft, params, origin)
    const repeat = reserved ? undefined : admission.recall('notice', fields)
    if (repeat) return { accepted: false, refusal: repeat }
    const notice = prepareNotice(reserved ? { ...draft, id: reserved.id } : draft, now())

    // The promise was made before, only its answer was lost.
    const earlier = reserved?.isTakenOver ? await findNotice(notice.app, notice.id) : null
    if (earlier) {
      const { createdAt, expiresAt } = earlier
      const resendInMs = await admission.nextInMs('notice', fields)
      return {
        accepted: true,
        notice: { ...notice, createdAt, expiresAt },
        resendAt: new Date(now() + resendInMs),
      }
    }

    const verdict = await admission.admit('notice', fields, notice.id)
    if (!verdict.admitted) return { accepted: false, refusal: verdict }

    let created: PreparedNotice
    try {
      created = await createNotice(notice, params)
    } catch (error) {
      await admission.giveBack('notice', fields, notice.id)
      throw error
    }
    const resendAt = new Date(created.createdAt.getTime() + verdict.nextInMs)
    return { accepted: true, notice: created, resendAt }
  }
}
