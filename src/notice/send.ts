/**
 * Sends a notice: first the limits, because a refusal must cost nothing, then the row, whose commit is the
 * promise. When it can't be made the quota is given back. For a test recipient there is none to be made.
 */
import { Problem } from '../base/problems.ts'
import type { CanReach } from '../recipient/can-reach.ts'
import type { TestRecipients } from '../recipient/test-recipients.ts'
import type { Origin, Quota, Refusal } from '../rules/quota.ts'
import type { CreatedNotice, CreateNotice, NoticeDraft, Params } from './create.ts'
import type { NoticeStore } from './store.ts'
import type { TakeTestNotice } from './test-notice.ts'

export interface SendRequest extends NoticeDraft {
  id: string
  params: Params
  origin: Origin
  /** By `performance.now()`: after it the caller is owed an answer. */
  answerBy: number
}

export interface NoticeRequest extends Omit<SendRequest, 'kind' | 'ttlMs' | 'scene'> {
  /** Not sent after it; the policy file's default when absent. */
  ttlMs?: number | undefined
}

export type SendOutcome =
  | {
      accepted: true
      notice: CreatedNotice
      resendAt: Date
      /** Of a code: checks of this recipient are locked for this caller, so it passes no earlier. */
      lockedForMs?: number
    }
  | { accepted: false; policy: string; refusal: Refusal }

export type SendNotice = ReturnType<typeof createSendNotice>

export function createSendNotice(deps: {
  quota: Quota
  createNotice: CreateNotice
  store: NoticeStore
  ttlMs: number
  testRecipients: Pick<TestRecipients, 'isTestRecipient'>
  takeTestNotice: TakeTestNotice
  canReach: CanReach
}) {
  const { quota, createNotice, store, testRecipients, takeTestNotice, canReach } = deps
  const policy = 'notice'

  function draftOf({ params, origin, answerBy, ttlMs = deps.ttlMs, ...asked }: NoticeRequest) {
    const notice = { ...asked, kind: policy, ttlMs } as const
    return { notice, fields: quota.fieldsOf(notice, params, origin) }
  }

  return {
    /**
     * Throws Unavailable when Redis or PostgreSQL is out of reach, and Problem when the recipient can't be; nothing was taken
     * then.
     */
    async send(request: NoticeRequest): Promise<SendOutcome> {
      const { notice, fields } = draftOf(request)
      const decision = await quota.acquire(policy, fields, notice.id)
      if (!decision.admitted) return { accepted: false, policy, refusal: decision }
      try {
        if (!(await canReach(notice))) throw new Problem('invalid_recipient')
        const leftMs = request.answerBy - performance.now()
        const created = testRecipients.isTestRecipient(notice.channel, notice.to)
          ? takeTestNotice(notice)
          : await createNotice(notice, request.params, leftMs)
        const resendAt = new Date(created.createdAt.getTime() + decision.nextInMs)
        return { accepted: true, notice: created, resendAt }
      } catch (error) {
        quota.release(policy, fields, notice.id)
        throw error
      }
    },

    /** What an earlier request made under this id, if it was sent or will be. Takes no quota. */
    async adopt(request: NoticeRequest): Promise<SendOutcome | null> {
      const { notice, fields } = draftOf(request)
      const adopted = await store.adopt(notice.app, notice.id)
      if (!adopted) return null
      const { createdAt, expiresAt } = adopted
      const resendAt = new Date(Date.now() + (await quota.nextInMs(policy, fields)))
      return { accepted: true, notice: { ...notice, createdAt, expiresAt }, resendAt }
    },
  }
}
