/**
 * Sends a code: the limits, because a refusal must cost nothing; a code, remembered before its notice is
 * made because it must never be sent before it can pass; the notice, whose commit is the promise; and
 * last the code in the place of the one before it. When anything before the commit can't be done, what
 * was taken is given back; the code before is untouched until then (see code-store.ts).
 *
 * A test recipient has a code of its own, which is remembered like any other; there is no notice.
 */
import { randomUUID } from 'node:crypto'
import { Problem } from '../base/problems.ts'
import type { CreatedNotice, CreateNotice, NoticeDraft, PreparedNotice } from '../notice/create.ts'
import type { SendOutcome, SendRequest } from '../notice/send.ts'
import type { NoticeStore } from '../notice/store.ts'
import type { TakeTestNotice } from '../notice/test-notice.ts'
import type { CanReach } from '../recipient/can-reach.ts'
import type { TestRecipients } from '../recipient/test-recipients.ts'
import type { CheckLimits } from '../rules/check-limits.ts'
import { pagePolicy } from '../rules/policies.ts'
import type { Origin, Quota } from '../rules/quota.ts'
import type { CodeStore } from './code-store.ts'
import { drawCode } from './draw-code.ts'
import { createValidity } from './validity.ts'

export interface CaptchaRequest extends Omit<SendRequest, 'kind' | 'ttlMs' | 'sendAt'> {
  scene: string
}

type RefusedSend = Extract<SendOutcome, { accepted: false }>
type PreparedCaptcha = PreparedNotice & { readonly scene: string }

export type SendCaptcha = ReturnType<typeof createSendCaptcha>

export function createSendCaptcha(deps: {
  quota: Quota
  checkLimits: Pick<CheckLimits, 'waitMsOf' | 'refundOf'>
  codes: CodeStore
  createNotice: CreateNotice
  store: NoticeStore
  code: { length: number; ttlMs: number }
  testRecipients: Pick<TestRecipients, 'codeOf'>
  takeTestNotice: TakeTestNotice
  canReach: CanReach
}) {
  const { quota, codes, createNotice, store, code, testRecipients, takeTestNotice } = deps
  const { canReach, checkLimits } = deps
  const validityIn = createValidity(code.ttlMs)

  function draftOf({ params, origin, answerBy, ...asked }: CaptchaRequest) {
    const notice = { ...asked, kind: 'captcha', ttlMs: code.ttlMs } as const
    const policy = origin.isPage ? pagePolicy : 'captcha'
    return { notice, policy, fields: quota.fieldsOf(notice, params, origin) }
  }

  /** A send is not refused by a lock of checks, so its answer tells of one; without a word when Redis gives none. */
  async function lockOf(notice: NoticeDraft & { scene: string }, origin: Origin) {
    const waitMs = await checkLimits.waitMsOf(notice, origin).catch(() => 0)
    return waitMs > 0 ? { lockedForMs: waitMs } : {}
  }

  /** A code, remembered; its notice, committed; and then the code is the one that passes. */
  async function makeCode(
    request: CaptchaRequest,
    notice: PreparedCaptcha,
    refund: string | undefined,
  ): Promise<CreatedNotice> {
    const digits = drawCode(code.length)
    const isPending = await codes.remember(notice, notice.id, digits, refund)
    const minutes = Math.ceil(code.ttlMs / 60_000)
    const validity = validityIn(notice.locale)
    const params = { ...request.params, code: digits, minutes, validity }
    const created = await createNotice(notice, params, request.answerBy - performance.now())
    // The promise is given. Should the process die before this, the worker settles the code before it
    // sends it.
    if (isPending) {
      await codes.settle(notice, notice.id).catch(() => codes.settleSoon(notice, notice.id))
    }
    return created
  }

  /** No worker will settle this one. */
  async function makeTestCode(notice: PreparedCaptcha, digits: string): Promise<CreatedNotice> {
    if (await codes.remember(notice, notice.id, digits)) await codes.settle(notice, notice.id)
    return takeTestNotice(notice)
  }

  return {
    /**
     * How to refuse the request, where this process remembers that the limits do. Undefined instead of the refusal if that
     * has changed meanwhile; nothing is taken then.
     */
    recall(
      request: CaptchaRequest,
      isHuman: boolean,
    ): (() => Promise<RefusedSend | undefined>) | undefined {
      const { policy, fields } = draftOf(request)
      if (!quota.isRefused(policy, fields, isHuman)) return undefined
      return async () => {
        const id = randomUUID()
        const decision = await quota.acquire(policy, fields, id, isHuman)
        if (!decision.admitted) return { accepted: false, policy: 'captcha', refusal: decision }
        quota.release(policy, fields, id)
        return undefined
      }
    },

    /**
     * `isHuman`: rules that ask for a challenge let it pass. Throws Unavailable when Redis or PostgreSQL is out of
     * reach, and Problem when the recipient can't be; nothing was taken then.
     */
    async send(request: CaptchaRequest, isHuman = true): Promise<SendOutcome> {
      const { notice, policy, fields } = draftOf(request)
      const decision = await quota.acquire(policy, fields, notice.id, isHuman)
      if (!decision.admitted) return { accepted: false, policy: 'captcha', refusal: decision }
      const lock = lockOf(notice, request.origin)
      try {
        if (!(await canReach(notice))) throw new Problem('invalid_recipient')
        const testCode = testRecipients.codeOf(notice.channel, notice.to)
        const created = await (testCode === undefined
          ? makeCode(request, notice, checkLimits.refundOf(policy, fields))
          : makeTestCode(notice, testCode))
        const resendAt = new Date(created.createdAt.getTime() + decision.nextInMs)
        return { accepted: true, notice: created, resendAt, ...(await lock) }
      } catch (error) {
        codes.forget(notice, notice.id)
        quota.release(policy, fields, notice.id)
        throw error
      }
    },

    /** What an earlier request made under this id, if it was sent or will be. Takes no quota. */
    async adopt(request: CaptchaRequest): Promise<SendOutcome | null> {
      const { notice, policy, fields } = draftOf(request)
      const adopted = await store.adopt(notice.app, notice.id)
      if (!adopted) return null
      // Without its code it will not be sent.
      if (adopted.isOpen && (await codes.settle(notice, notice.id)) !== 'current') return null
      const { createdAt, expiresAt } = adopted
      const resendAt = new Date(Date.now() + (await quota.nextInMs(policy, fields)))
      const lock = await lockOf(notice, request.origin)
      return { accepted: true, notice: { ...notice, createdAt, expiresAt }, resendAt, ...lock }
    },
  }
}
