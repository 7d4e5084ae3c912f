/**
 * Sends a code, in this order. First the limits, so that a refusal costs nothing. Then the code is stored, because it
 * must be able to pass before it is sent. Then the notice, whose commit is the promise. Last, the new code replaces
 * the old one. If a step before the commit fails, the uses are given back. Until then the old code is untouched (see
 * code-store.ts).
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
import type { OncePerKey, Reservation } from '../notice/once-per-key.ts'
import type { NoticeStore } from '../notice/store.ts'
import type { CanReach } from '../recipient/can-reach.ts'
import type { TestRecipients } from '../recipient/test-recipients.ts'
import type { CheckLimits } from '../rules/check-limits.ts'
import { pagePolicy } from '../rules/policies.ts'
import { type Caller, type Fields, type Origin, originOf, type Quota } from '../rules/quota.ts'
import { limitedBy } from '../rules/refused.ts'
import type { Challenges } from './challenges.ts'
import type { CodeStore } from './code-store.ts'
import { createValidity } from './validity.ts'

export interface CaptchaAsked extends SendAsked {
  /** The purpose of the code. */
  scene: string
  /** The answer to a challenge, from callers in pages. */
  challenge?: string | undefined
}

export type SendCaptcha = ReturnType<typeof createSendCaptcha>

type PreparedCaptcha = PreparedNotice & { readonly scene: string }

interface Sending {
  draft: Omit<PreparedCaptcha, 'id'>
  params: Params
  origin: Origin
  policy: string
  fields: Fields
  answerBy: number
}

export function createSendCaptcha(deps: {
  readMessage: ReadMessage
  oncePerKey: OncePerKey
  challenges: Pick<Challenges, 'enter' | 'refuse'>
  quota: Quota
  checkLimits: Pick<CheckLimits, 'waitMsOf' | 'refundOf'>
  codes: CodeStore
  createNotice: CreateNotice
  store: Pick<NoticeStore, 'adopt'>
  code: { length: number; ttlMs: number }
  testRecipients: Pick<TestRecipients, 'codeOf'>
  canReach: CanReach
}) {
  const { readMessage, oncePerKey, challenges, quota, checkLimits, codes } = deps
  const { createNotice, store, code, testRecipients, canReach } = deps
  const validityIn = createValidity(code.ttlMs)

  /** Throws Unavailable if Redis or PostgreSQL is out of reach; then nothing was taken. */
  return async function sendCaptcha(asked: CaptchaAsked, caller: Caller): Promise<SendOutcome> {
    const answerBy = oncePerKey.answerBy()
    const { app, isPage } = caller
    const { channel, scene, template, challenge, idempotencyKey } = asked
    const message = readMessage('captcha', asked, app)
    if ('outcome' in message) return message
    const { to, locale, country, params } = message
    const ttlMs = code.ttlMs
    const draft = { app, kind: 'captcha', channel, to, scene, template, locale, ttlMs } as const
    const origin = originOf(caller, asked.ip, country)
    const policy = isPage ? pagePolicy : 'captcha'
    const fields = quota.fieldsOf(draft, params, origin)

    if (isPage && idempotencyKey !== undefined) {
      // A request that will be refused must not take a turn. The exception is a repeat, whose key is already known.
      const isHuman = challenge !== undefined
      const isRefused = quota.isRefused(policy, fields, isHuman)
      const isNew = isRefused && (await oncePerKey.isNew(idempotencyKey, caller, answerBy))
      const refusal = isNew ? await quota.findRefusal(policy, fields, isHuman) : undefined
      if (refusal) return challenges.refuse(caller, limitedBy('captcha', refusal))
    }
    const reservation = await oncePerKey.begin('captcha', asked, caller, answerBy)
    if ('outcome' in reservation) return reservation
    const sending = { draft, params, origin, policy, fields, answerBy }
    let outcome: SendOutcome | undefined
    try {
      outcome =
        (await adopt(sending, reservation)) ?? (await send(sending, reservation, caller, challenge))
      return outcome
    } finally {
      await reservation.end(outcome)
    }
  }

  /** The answer to an earlier request with this key, if its notice was sent or will be. Takes no quota. */
  async function adopt(
    { draft, origin, policy, fields }: Sending,
    { earlierId: id }: Reservation,
  ): Promise<Accepted | undefined> {
    const row = id ? await store.adopt(draft.app, id) : null
    if (!id || !row) return undefined
    // Without its code, the notice will not be sent.
    if (row.isOpen && (await codes.settle(draft, id)) !== 'current') return undefined
    const resendAtMs = Date.now() + (await quota.nextInMs(policy, fields))
    return acceptedOf({ ...draft, ...row, id }, resendAtMs, await lockOf(draft, origin))
  }

  async function send(
    { draft, params, origin, policy, fields, answerBy }: Sending,
    reservation: Reservation,
    caller: Caller,
    challenge: string | undefined,
  ): Promise<SendOutcome> {
    const notice = { ...draft, id: await reservation.claimId() }
    const entry = await challenges.enter(caller, challenge)
    if ('outcome' in entry) return entry
    let isTaken = false
    let created: CreatedNotice | undefined
    try {
      const decision = await quota.acquire(policy, fields, notice.id, entry.isHuman)
      if (!decision.admitted) return await challenges.refuse(caller, limitedBy('captcha', decision))
      isTaken = true
      const lock = lockOf(draft, origin)
      if (!(await canReach(notice))) return { outcome: 'invalid_recipient' }
      const refund = checkLimits.refundOf(policy, fields)
      created = await makeCode(notice, params, refund, answerBy)
      return acceptedOf(created, created.createdAt.getTime() + decision.nextInMs, await lock)
    } finally {
      if (!created) entry.giveBack()
      if (!created && isTaken) {
        codes.forget(notice, notice.id)
        quota.release(policy, fields, notice.id)
      }
    }
  }

  /** Stores a code, commits its notice, and then makes the code valid. */
  async function makeCode(
    notice: PreparedCaptcha,
    params: Params,
    refund: string | undefined,
    answerBy: number,
  ): Promise<CreatedNotice> {
    const { id, locale } = notice
    const testCode = testRecipients.codeOf(notice.channel, notice.to)
    const digits = testCode ?? drawCode(code.length)
    const isPending = await codes.remember(notice, id, digits, testCode ? undefined : refund)
    // A test recipient has no worker that would settle the code.
    if (isPending && testCode) await codes.settle(notice, id)
    const own = {
      code: digits,
      minutes: Math.ceil(code.ttlMs / 60_000),
      validity: validityIn(locale),
    }
    const created = await createNotice(notice, { ...params, ...own }, answerBy - performance.now())
    // The promise is given. If the process dies here, the worker settles the code before it sends the message.
    if (isPending && !testCode) {
      await codes.settle(notice, id).catch(() => codes.settleSoon(notice, id))
    }
    return created
  }

  /**
   * A lock of checks does not refuse a send, but the answer reports the lock. Without an answer from Redis it is left
   * out.
   */
  async function lockOf(draft: Sending['draft'], origin: Origin) {
    const waitMs = await checkLimits.waitMsOf(draft, origin).catch(() => 0)
    return waitMs > 0 ? { lockedForMs: waitMs } : {}
  }

  function acceptedOf(
    notice: Omit<CreatedNotice, 'createdAt'>,
    resendAtMs: number,
    lock: { lockedForMs?: number },
  ): Accepted {
    const { scene = '' } = notice
    return { ...acceptedAs(notice, resendAtMs), scene, codeLength: code.length, ...lock }
  }
}

/** A code of `length` decimal digits. All codes are equally likely, also those with leading zeros. */
export function drawCode(length: number): string {
  return String(randomInt(10 ** length)).padStart(length, '0')
}
