/**
 * Sends one way of a verification: the send of a code, by the same pipeline. Its digits join the code of the verification, and
 * the row of the verification is made before its first notice. Without the commit of the notice, the way has not begun.
 */
import type { NoticeId } from '../base/ids.ts'
import { type Links, linkOf } from '../notice/code-link.ts'
import type { PreparedNotice } from '../notice/create.ts'
import type { ReadMessage } from '../notice/message.ts'
import type { Made, Pipeline, Prepared, Taken } from '../notice/pipeline.ts'
import type { NoticeStore } from '../notice/store.ts'
import { createValidityText, minutesOf } from '../notice/validity-text.ts'
import type { TestRecipients } from '../recipient/test-recipients.ts'
import { type Caller, originOf } from '../rules/caller.ts'
import type { GuessLimits } from '../rules/guess-limits.ts'
import { pagePolicy } from '../rules/policies.ts'
import type { Quota } from '../rules/quota.ts'
import type { Limited, Refused } from '../rules/refused.ts'
import type { Challenges } from './challenges.ts'
import type { CodeStore } from './code-store.ts'
import { drawCode } from './send.ts'
import { homeOf, type OpenVerification, sealFacts, type Way } from './verification.ts'

export interface WayAsked {
  verification: OpenVerification
  /** The place of the way. */
  way: number
  noticeId: NoticeId
  caller: Caller
  /** Rules in mode challenge admit it. */
  isHuman: boolean
  /** By `performance.now()`. */
  answerBy: number
  /** A worker begins the way, and no caller waits. */
  isRepeated?: boolean
}

/** Ten draws find other digits than at most four notices have, except with a chance of 1 to 10^30. */
const maxDraws = 10

export type SendWay = ReturnType<typeof createSendWay>

export function createSendWay(deps: {
  readMessage: ReadMessage
  make: Pipeline['make']
  quota: Pick<Quota, 'fieldsOf'>
  guessLimits: Pick<GuessLimits, 'refundOf' | 'waitMsOf'>
  challenges: Pick<Challenges, 'refuse'>
  codes: Pick<CodeStore, 'add' | 'settle' | 'settleSoon' | 'forget'>
  store: Pick<NoticeStore, 'addVerification'>
  seal: (text: string, context: string) => Buffer
  code: { length: number; ttlMs: number }
  links: Links
  testRecipients: Pick<TestRecipients, 'codeOf'>
}) {
  const { readMessage, make, quota, guessLimits, challenges, codes, code, testRecipients } = deps
  const validityIn = createValidityText(code.ttlMs)

  /**
   * The facts that limits count of a way; a refusal if it has no route now. Only a caller in process may name a template of a
   * plugin, which is checked when the verification begins.
   */
  function wayOf(verification: OpenVerification, way: Way, caller: Caller, isInProcess = true) {
    const { app, scene, template, params, locale, ip, lane } = verification
    const asked = { ...way, template, params, locale }
    const message = readMessage('captcha', asked, { app, isInProcess })
    if ('outcome' in message) return message
    const named = { app, kind: 'captcha', ...way, scene, template, locale: message.locale } as const
    const draft = { ...named, ttlMs: code.ttlMs, providers: message.providers }
    const origin = originOf(caller, caller.isPage ? undefined : ip, message.country, lane)
    const policy = caller.isPage ? pagePolicy : (verification.policy ?? 'captcha')
    return {
      draft,
      origin,
      policy,
      params: message.params,
      fields: quota.fieldsOf(draft, message.params, origin),
    }
  }

  return {
    wayOf,

    /** Throws Unavailable if Redis or PostgreSQL is out of reach. */
    async sendWay({ verification, way, noticeId, caller, ...asked }: WayAsked): Promise<Made> {
      const found = wayOf(verification, verification.ways[way] as Way, caller)
      if ('outcome' in found) return found
      const { draft, origin, policy, params, fields } = found
      const { id: verificationId, notices, scene } = verification
      const begun = { verificationId, way, seen: notices.length }
      const { isHuman, answerBy, isRepeated = false } = asked
      const sending = { draft, params, caller, policy, fields, asked: {}, answerBy, isRepeated }
      return make({ ...draft, begun, id: noticeId }, sending, {
        enter: async () => ({ isHuman }),
        refuse: async (limited) => (isRepeated ? limited : refuse(limited, caller)),
        prepare: (notice, taken, requestId) =>
          store(notice, verification, taken, guessLimits.refundOf(policy, fields, requestId)),
        async answer() {
          const waiting = isRepeated ? 0 : guessLimits.waitMsOf(draft, origin).catch(() => 0)
          const lockedForMs = await waiting
          const codeLength = testRecipients.codeOf(draft.to)?.length ?? code.length
          return { scene, codeLength, ...(lockedForMs > 0 ? { lockedForMs } : {}) }
        },
      })
    },

    refuse,
  }

  /** Callers in pages know one policy. */
  function refuse(limited: Limited, caller: Caller): Promise<Refused> {
    return challenges.refuse(caller, caller.isPage ? { ...limited, policy: 'captcha' } : limited)
  }

  async function store(
    notice: PreparedNotice,
    verification: OpenVerification,
    taken: Taken,
    onPass: string | undefined,
  ): Promise<Prepared | Refused> {
    const { channel, to, locale, id: noticeId } = notice
    const { id: codeId, scene, app, ways, notices, lane } = verification
    const home = homeOf(verification)
    const owner = { app, scene, channel, to }
    const fixed = testRecipients.codeOf(to)
    const isFirst = notices.length === 0
    taken.add(() => codes.forget(home, noticeId, codeId))
    if (to !== home.to) taken.add(() => codes.forget(owner, noticeId, codeId))
    let digits = ''
    let added: Awaited<ReturnType<typeof codes.add>> = 'same'
    for (let draw = 0; added === 'same' && draw < maxDraws; draw++) {
      digits = fixed ?? drawCode(code.length)
      const mayRepeat = fixed !== undefined
      const mine = { noticeId, owner, code: digits, isFirst, lane, mayRepeat }
      added = await codes.add(codeId, home, { ...mine, onPass: fixed ? undefined : onPass })
    }
    if (added === 'gone' || added === 'same') return { outcome: 'code_gone', reason: 'expired' }
    if (isFirst) {
      const { workflow, keyId, isPage } = verification
      await deps.store.addVerification({
        ...{
          id: codeId,
          app,
          scene,
          workflow,
          keyId,
          isPage,
          ways: ways.length,
          ttlMs: code.ttlMs,
        },
        sealed: sealFacts(verification, deps.seal, codeId),
      })
    }
    const link = linkOf(deps.links, scene, digits, codeId)
    const time = { minutes: minutesOf(code.ttlMs), validity: validityIn(locale) }
    return {
      params: { code: digits, ...time, ...(link ? { link } : {}) },
      async afterCommit() {
        if (added === 'current') return
        await codes
          .settle(owner, noticeId, codeId)
          .catch(() => codes.settleSoon(owner, noticeId, codeId))
      },
    }
  }
}
