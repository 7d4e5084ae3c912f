/**
 * Sends a code. It adds steps to the pipeline of every send. Before the limits, a page's challenge is taken. Before the
 * commit, the code is stored, because it must be able to pass before it is sent. After the commit, the new code replaces
 * the old one. If a step before the commit fails, the old code stays valid (see code-store.ts).
 *
 * A test recipient has a fixed code, which is stored like any other, and no notice.
 */
import type { Channel } from '../base/channel.ts'
import type { PreparedNotice } from '../notice/create.ts'
import type { SendOutcome } from '../notice/message.ts'
import type { OncePerKey } from '../notice/once-per-key.ts'
import type { Prepared, Send, Taken } from '../notice/pipeline.ts'
import type { Caller } from '../rules/caller.ts'
import { invalidRequest, type Limited } from '../rules/refused.ts'
import type { Challenges } from './challenges.ts'
import { type CodeAsked, type CodeSendDeps, createCodeSends } from './code-sends.ts'
import type { CodeStore } from './code-store.ts'
import type { KnownBrowsers } from './known-browsers.ts'

export interface CaptchaAsked extends CodeAsked {
  channel: Channel
  /** A code of the caller's own: 4 to 10 ASCII letters or digits. It is sent and kept in place of a random code. */
  code?: string | undefined
}

export type SendCaptcha = ReturnType<typeof createSendCaptcha>

export function createSendCaptcha(
  deps: CodeSendDeps & {
    oncePerKey: Pick<OncePerKey, 'answerBy' | 'isNew'>
    challenges: Pick<Challenges, 'enter'>
    known: Pick<KnownBrowsers, 'laneOf'>
    codes: Pick<CodeStore, 'digestsOf' | 'remember' | 'settle' | 'settleCommitted' | 'forget'>
    send: Send
    code: { own: boolean }
  },
) {
  const { readMessage, oncePerKey, challenges, guessLimits, codes } = deps
  const { send, code, testRecipients } = deps
  const { countedOf, refuse, refuseEarly, paramsOf, drawDigits, answerOf } = createCodeSends(deps)

  /** Throws Unavailable if Redis or PostgreSQL is out of reach; then the uses of the send are given back. */
  return async function sendCaptcha(asked: CaptchaAsked, caller: Caller): Promise<SendOutcome> {
    const answerBy = oncePerKey.answerBy()
    const { app } = caller
    const { channel, scene, challenge, code: own } = asked
    if (own !== undefined && !(code.own || caller.sendsOwnCodes)) {
      return invalidRequest('code', 'madeByPostern')
    }
    const message = readMessage('captcha', asked, caller)
    if ('outcome' in message) return message
    const { to } = message
    const lane = await deps.known.laneOf(asked.known, { app, channel, to })
    const counted = countedOf(asked, message, caller, lane)
    const { draft, params, policy, fields } = counted

    const early = await refuseEarly(counted, asked, caller, answerBy)
    if (early) return early
    const codeDigests = own === undefined ? undefined : codes.digestsOf(draft, own)
    const given = testRecipients.codeOf(to) ?? own
    const keyed = { ...asked, codeDigests }
    const sending = { draft, params, caller, policy, fields, asked: keyed, answerBy }
    return send(sending, {
      async enter(taken) {
        const entry = await challenges.enter(caller, challenge)
        if (!('outcome' in entry)) taken.add(entry.giveBack)
        return entry
      },
      refuse: (limited: Limited) => refuse(limited, caller),
      prepare: (notice, taken, requestId) =>
        store({ ...notice, scene }, taken, given, guessLimits.refundOf(policy, fields, requestId)),
      // Without its code, an open notice will not be sent.
      isAlive: async (notice, isOpen) =>
        !isOpen || (await codes.settle({ ...notice, scene }, notice.id)) === 'current',
      answer: () => answerOf(counted, given),
    })
  }

  /** Stores a code that passes after the commit of its notice. */
  async function store(
    notice: PreparedNotice & { scene: string },
    taken: Taken,
    given: string | undefined,
    refund: string | undefined,
  ): Promise<Prepared> {
    const { id, scene, locale } = notice
    const isTest = testRecipients.codeOf(notice.to) !== undefined
    const made = given ?? drawDigits()
    taken.add(() => codes.forget(notice, id))
    const isPending = await codes.remember(notice, id, made, isTest ? undefined : refund)
    // A test recipient has no worker that would settle the code.
    if (isPending && isTest) await codes.settle(notice, id)
    return {
      params: paramsOf(scene, locale, made, id),
      // If the process dies before this, the worker settles the code before it sends.
      async afterCommit() {
        if (isPending && !isTest) await codes.settleCommitted(notice, id)
      },
    }
  }
}
