/**
 * Sends one way of a verification: the send of a code, by the same pipeline. Its digits join the code of the verification, and
 * the row of the verification is made before its first notice. Without the commit of the notice, the way has not begun.
 */
import type { NoticeId } from '../base/ids.ts'
import type { PreparedNotice } from '../notice/create.ts'
import type { Made, Pipeline, Prepared, Taken } from '../notice/pipeline.ts'
import type { NoticeStore } from '../notice/store.ts'
import type { Caller } from '../rules/caller.ts'
import type { Refused } from '../rules/refused.ts'
import { type CodeSendDeps, createCodeSends } from './code-sends.ts'
import type { CodeStore } from './code-store.ts'
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

export function createSendWay(
  deps: CodeSendDeps & {
    make: Pipeline['make']
    codes: Pick<CodeStore, 'add' | 'settle' | 'settleSoon' | 'forget'>
    store: Pick<NoticeStore, 'addVerification'>
    seal: (text: string, context: string) => Buffer
  },
) {
  const { make, codes, guessLimits, testRecipients } = deps
  const { countedOf, refuse, paramsOf, drawDigits, answerOf } = createCodeSends(deps)

  /**
   * The facts that limits count of a way; a refusal if it has no route now. Only a caller in process may name a template of a
   * plugin, which is checked when the verification begins.
   */
  function wayOf(verification: OpenVerification, way: Way, caller: Caller, isInProcess = true) {
    const asked = { ...verification, ...way }
    const message = deps.readMessage('captcha', asked, { app: caller.app, isInProcess })
    return 'outcome' in message ? message : countedOf(asked, message, caller, verification.lane)
  }

  return {
    wayOf,

    /** Throws Unavailable if Redis or PostgreSQL is out of reach. */
    async sendWay({ verification, way, noticeId, caller, ...asked }: WayAsked): Promise<Made> {
      const found = wayOf(verification, verification.ways[way] as Way, caller)
      if ('outcome' in found) return found
      const { draft, policy, params, fields } = found
      const begun = { verificationId: verification.id, way, seen: verification.notices.length }
      const { isHuman, answerBy, isRepeated = false } = asked
      const sending = { draft, params, caller, policy, fields, asked: {}, answerBy, isRepeated }
      return make({ ...draft, begun, id: noticeId }, sending, {
        enter: async () => ({ isHuman }),
        refuse: async (limited) => (isRepeated ? limited : refuse(limited, caller)),
        prepare: (notice, taken, requestId) =>
          store(notice, verification, taken, guessLimits.refundOf(policy, fields, requestId)),
        answer: async () => (isRepeated ? {} : answerOf(found, testRecipients.codeOf(draft.to))),
      })
    },

    refuse,
  }

  async function store(
    notice: PreparedNotice,
    verification: OpenVerification,
    taken: Taken,
    onPass: string | undefined,
  ): Promise<Prepared | Refused> {
    const { channel, to, locale, id: noticeId } = notice
    const { id: codeId, scene, app, notices, lane } = verification
    const home = homeOf(verification)
    const owner = { app, scene, channel, to }
    const fixed = testRecipients.codeOf(to)
    const isFirst = notices.length === 0
    taken.add(() => codes.forget(home, noticeId, codeId))
    if (to !== home.to) taken.add(() => codes.forget(owner, noticeId, codeId))
    let digits = ''
    let added: Awaited<ReturnType<typeof codes.add>> = 'same'
    for (let draw = 0; added === 'same' && draw < maxDraws; draw++) {
      digits = fixed ?? drawDigits()
      const mayRepeat = fixed !== undefined
      const mine = { noticeId, owner, code: digits, isFirst, lane, mayRepeat }
      added = await codes.add(codeId, home, { ...mine, onPass: fixed ? undefined : onPass })
    }
    if (added === 'gone' || added === 'same') return { outcome: 'code_gone', reason: 'expired' }
    if (isFirst) {
      await deps.store.addVerification({
        ...{ ...verification, ways: verification.ways.length, ttlMs: deps.code.ttlMs },
        sealed: sealFacts(verification, deps.seal, codeId),
      })
    }
    return {
      params: paramsOf(scene, locale, digits, codeId),
      async afterCommit() {
        if (added === 'current') return
        await codes
          .settle(owner, noticeId, codeId)
          .catch(() => codes.settleSoon(owner, noticeId, codeId))
      },
    }
  }
}
