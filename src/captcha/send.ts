/**
 * Sends a code. The order is the design: first the limits, because a refusal must cost nothing; then
 * the code, because a code must never be sent before it can pass; last the row, whose commit is the
 * promise. When the code or the row can't be written, the quota is given back.
 */
import type { Admission, AdmissionRefusal, Origin } from '../notice/admission.ts'
import {
  type CreateNotice,
  type FindNotice,
  type Params,
  type PreparedNotice,
  prepareNotice,
  type ReservedNotice,
} from '../notice/create.ts'
import { drawCode } from './code.ts'
import type { CodeStore } from './code-store.ts'

export interface CaptchaRequest {
  reserved?: ReservedNotice
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
  | { accepted: false; refusal: AdmissionRefusal }

export type SendCaptcha = ReturnType<typeof createSendCaptcha>

export function createSendCaptcha(deps: {
  admission: Admission
  codes: CodeStore
  createNotice: CreateNotice
  findNotice: FindNotice
  code: { length: number; ttlMs: number }
  now: () => number
}) {
  const { admission, codes, createNotice, findNotice, code, now } = deps

  /** Throws Unavailable when Redis or PostgreSQL is out of reach; nothing was taken then. */
  return async function sendCaptcha(request: CaptchaRequest): Promise<SendCaptchaOutcome> {
    const { params, origin, reserved, ...facts } = request
    const draft = { ...facts, kind: 'captcha', ttlMs: code.ttlMs } as const
    const fields = admission.fieldsOf(draft, params, origin)
    const repeat = reserved ? undefined : admission.recall('captcha', fields)
    if (repeat) return { accepted: false, refusal: repeat }
    const notice = prepareNotice(reserved ? { ...draft, id: reserved.id } : draft, now())

    // The promise was made before, only its answer was lost. A new code would kill the one that was sent.
    const earlier = reserved?.isTakenOver ? await findNotice(notice.app, notice.id) : null
    if (earlier) {
      const { createdAt, expiresAt } = earlier
      const resendInMs = await admission.nextInMs('captcha', fields)
      return {
        accepted: true,
        notice: { ...notice, createdAt, expiresAt },
        resendAt: new Date(now() + resendInMs),
        codeLength: code.length,
      }
    }

    const verdict = await admission.admit('captcha', fields, notice.id)
    if (!verdict.admitted) return { accepted: false, refusal: verdict }

    let created: PreparedNotice
    try {
      const digits = drawCode(code.length)
      await codes.remember(request, notice.id, digits)
      created = await createNotice(notice, {
        ...params,
        code: digits,
        minutes: Math.ceil(code.ttlMs / 60_000),
      })
    } catch (error) {
      // Each is best effort: what is out of reach now ends by its own time to live.
      await Promise.allSettled([
        codes.forget(request, notice.id),
        admission.giveBack('captcha', fields, notice.id),
      ])
      throw error
    }
    return {
      accepted: true,
      notice: created,
      resendAt: new Date(created.createdAt.getTime() + verdict.nextInMs),
      codeLength: code.length,
    }
  }
}
