/**
 * Sends a code, in this order. First the limits decide, so that a refusal costs nothing. Then the code is stored,
 * because it must be able to pass before it is sent. Then the notice is committed: from here on, the message will be
 * sent. Last, the new code replaces the old one. If a step before the commit fails, the uses are given back, and the
 * old code stays valid (see code-store.ts).
 *
 * A test recipient has a fixed code, which is stored like any other, and no notice.
 */
import { randomInt } from 'node:crypto'
import type { CreatedNotice, CreateNotice, Params, PreparedNotice } from '../notice/create.ts'
import {
  type Accepted,
  acceptedAs,
  type ReadMessage,
  type SendAsked,
  type SendOutcome,
} from '../notice/message.ts'
import type { OncePerKey } from '../notice/once-per-key.ts'
import type { NoticeStore } from '../notice/store.ts'
import { createValidityText, minutesOf } from '../notice/validity-text.ts'
import type { CanReach } from '../recipient/mail-domains.ts'
import type { TestRecipients } from '../recipient/test-recipients.ts'
import { type Caller, type Origin, originOf } from '../rules/caller.ts'
import type { GuessLimits } from '../rules/guess-limits.ts'
import { pagePolicy } from '../rules/policies.ts'
import type { Fields, Quota } from '../rules/quota.ts'
import { invalidRequest, limitedBy } from '../rules/refused.ts'
import type { Challenges } from './challenges.ts'
import type { CodeStore } from './code-store.ts'

export interface CaptchaAsked extends SendAsked {
  /** The purpose of the code. */
  scene: string
  /** A code of the caller's own: 4 to 10 ASCII letters or digits. It is sent and kept in place of a random code. */
  code?: string | undefined
  /** The policy of the limit check; `captcha` if absent. */
  policy?: string | undefined
  /** The answer to a challenge, from callers in pages. */
  challenge?: string | undefined
}

export type SendCaptcha = ReturnType<typeof createSendCaptcha>

type PreparedCaptcha = PreparedNotice & { readonly scene: string }

interface Sending {
  params: Params
  origin: Origin
  policy: string
  fields: Fields
  answerBy: number
  /** A code that is not drawn: the fixed code of a test recipient, or a code that the caller made. */
  given: string | undefined
}

export function createSendCaptcha(deps: {
  readMessage: ReadMessage
  oncePerKey: OncePerKey
  challenges: Pick<Challenges, 'enter' | 'refuse'>
  quota: Quota
  guessLimits: Pick<GuessLimits, 'waitMsOf' | 'refundOf'>
  codes: CodeStore
  createNotice: CreateNotice
  store: Pick<NoticeStore, 'adopt'>
  code: { length: number; ttlMs: number; own: boolean }
  testRecipients: Pick<TestRecipients, 'codeOf'>
  canReach: CanReach
  /** PostgreSQL's time. */
  nowMs: () => number
}) {
  const { readMessage, oncePerKey, challenges, quota, guessLimits, codes } = deps
  const { createNotice, store, code, testRecipients, canReach, nowMs } = deps
  const validityIn = createValidityText(code.ttlMs)

  /** Throws Unavailable if Redis or PostgreSQL is out of reach; then the uses of the send are given back. */
  return async function sendCaptcha(asked: CaptchaAsked, caller: Caller): Promise<SendOutcome> {
    const answerBy = oncePerKey.answerBy()
    const { app, isPage } = caller
    const { channel, scene, template, challenge, idempotencyKey, code: own } = asked
    if (own !== undefined && !(code.own || caller.sendsOwnCodes)) {
      return invalidRequest('code', 'madeByPostern')
    }
    const message = readMessage('captcha', asked, caller)
    if ('outcome' in message) return message
    const { to, locale, country, params } = message
    const ttlMs = code.ttlMs
    const draft = { app, kind: 'captcha', channel, to, scene, template, locale, ttlMs } as const
    const origin = originOf(caller, asked.ip, country)
    const policy = isPage ? pagePolicy : (asked.policy ?? 'captcha')
    const fields = quota.fieldsOf(draft, params, origin)

    if (isPage && idempotencyKey !== undefined) {
      // A request that will be refused must not take a turn. The exception is a repeat, whose key is already known.
      const isHuman = challenge !== undefined
      const isRefused = quota.isRefused(policy, fields, isHuman)
      const isNew = isRefused && (await oncePerKey.isNew(idempotencyKey, caller, answerBy))
      const refusal = isNew ? await quota.findRefusal(policy, fields, isHuman) : undefined
      if (refusal) return challenges.refuse(caller, limitedBy('captcha', refusal))
    }
    const codeDigests = own === undefined ? undefined : codes.digestsOf(draft, own)
    const given = testRecipients.codeOf(to) ?? own
    const sending = { params, origin, policy, fields, answerBy, given }
    const begun = await oncePerKey.begin('captcha', { ...asked, codeDigests }, caller, answerBy)
    if ('outcome' in begun) return begun
    let outcome: SendOutcome | undefined
    try {
      if (begun.earlierId) outcome = await adopt({ ...draft, id: begun.earlierId }, sending)
      outcome ??= await make({ ...draft, id: await begun.newId() }, sending, caller, challenge)
      return outcome
    } finally {
      await begun.end(outcome)
    }
  }

  /** The answer for the notice of an earlier request, if that notice was sent or will be sent. Takes no quota. */
  async function adopt(
    notice: PreparedCaptcha,
    { origin, policy, fields, given }: Sending,
  ): Promise<Accepted | undefined> {
    const row = await store.adopt(notice.app, notice.id)
    if (!row) return undefined
    // Without its code, the notice will not be sent.
    if (row.isOpen && (await codes.settle(notice, notice.id)) !== 'current') return undefined
    const waitMs = await quota.nextInMs(policy, fields)
    return acceptedOf({ ...notice, ...row }, given, nowMs() + waitMs, await lockOf(notice, origin))
  }

  async function make(
    notice: PreparedCaptcha,
    { params, origin, policy, fields, answerBy, given }: Sending,
    caller: Caller,
    challenge: string | undefined,
  ): Promise<SendOutcome> {
    const entry = await challenges.enter(caller, challenge)
    if ('outcome' in entry) return entry
    let isTaken = false
    let isRemembered = false
    let isAnswered = false
    let created: CreatedNotice | undefined
    try {
      const decision = await quota.acquire(policy, fields, notice.id, entry.isHuman)
      if (!decision.admitted) {
        const known = caller.isPage ? 'captcha' : policy
        return await challenges.refuse(caller, limitedBy(known, decision))
      }
      isTaken = true
      const lock = lockOf(notice, origin)
      if (!(await canReach(notice))) {
        // The challenge stays used too: each look-up in DNS has cost one.
        isTaken = false
        isAnswered = true
        quota.releaseUnsent(policy, fields, notice.id)
        return { outcome: 'invalid_recipient', because: 'no_server' }
      }
      isRemembered = true
      const refund = guessLimits.refundOf(policy, fields)
      created = await makeCode(notice, params, given, refund, answerBy)
      const resendAtMs = created.createdAt.getTime() + decision.nextInMs
      return acceptedOf(created, given, resendAtMs, await lock)
    } finally {
      if (!created && !isAnswered) entry.giveBack()
      if (!created && isRemembered) codes.forget(notice, notice.id)
      if (!created && isTaken) quota.release(policy, fields, notice.id)
    }
  }

  /** Stores a code, commits its notice, and then makes the code valid. */
  async function makeCode(
    notice: PreparedCaptcha,
    params: Params,
    given: string | undefined,
    refund: string | undefined,
    answerBy: number,
  ): Promise<CreatedNotice> {
    const { id, locale } = notice
    const isTest = testRecipients.codeOf(notice.to) !== undefined
    const made = given ?? drawCode(code.length)
    const isPending = await codes.remember(notice, id, made, isTest ? undefined : refund)
    // A test recipient has no worker that would settle the code.
    if (isPending && isTest) await codes.settle(notice, id)
    const own = {
      code: made,
      minutes: minutesOf(code.ttlMs),
      validity: validityIn(locale),
    }
    const created = await createNotice(notice, { ...params, ...own }, answerBy - performance.now())
    // The notice is committed, so it will be sent. If the process dies here, the worker settles the code before it
    // sends.
    if (isPending && !isTest) {
      await codes.settle(notice, id).catch(() => codes.settleSoon(notice, id))
    }
    return created
  }

  /** A lock of checks does not refuse a send, but the answer reports it. Left out if Redis gives no answer. */
  async function lockOf(notice: PreparedCaptcha, origin: Origin) {
    const waitMs = await guessLimits.waitMsOf(notice, origin).catch(() => 0)
    return waitMs > 0 ? { lockedForMs: waitMs } : {}
  }

  function acceptedOf(
    notice: Omit<CreatedNotice, 'createdAt'>,
    given: string | undefined,
    resendAtMs: number,
    lock: { lockedForMs?: number },
  ): Accepted {
    const { scene = '' } = notice
    const codeLength = given?.length ?? code.length
    return { ...acceptedAs(notice, { scene }, resendAtMs), codeLength, ...lock }
  }
}

/** A code of `length` decimal digits. All codes are equally likely, also those with leading zeros. */
export function drawCode(length: number): string {
  return String(randomInt(10 ** length)).padStart(length, '0')
}
