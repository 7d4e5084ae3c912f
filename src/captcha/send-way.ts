/**
 * Sends one way of a verification: the send of a code, by the same pipeline. Its digits join the code of the verification, and
 * the row of the verification is made before its first notice. Without the commit of the notice, the way has not begun.
 */
import type { NoticeId } from '../base/ids.ts'
import type { PreparedNotice } from '../notice/create.ts'
import type { Made, Pipeline, Prepared, Sending, Taken } from '../notice/pipeline.ts'
import type { NoticeStore } from '../notice/store.ts'
import type { Caller } from '../rules/caller.ts'
import type { Refused } from '../rules/refused.ts'
import { type CodeSendDeps, createCodeSends } from './code-sends.ts'
import type { CodeStore } from './code-store.ts'
import { homeOf, type OpenVerification, sealFacts, type Way } from './verification.ts'

/** `isRepeated`: a worker begins the way. */
export interface WayAsked extends Pick<Sending, 'caller' | 'answerBy' | 'isRepeated'> {
  verification: OpenVerification
  /** The place of the way. */
  way: number
  noticeId: NoticeId
  /** Rules in mode challenge admit it. */
  isHuman: boolean
}

/** Ten draws find other digits than at most four notices have, except with a chance of 1 to 10^30. */
const maxDraws = 10

export type SendWay = ReturnType<typeof createSendWay>

export function createSendWay(
  deps: CodeSendDeps & {
    make: Pipeline['make']
    codes: Pick<CodeStore, 'add' | 'settleCommitted' | 'forget'>
    store: Pick<NoticeStore, 'addVerification'>
    seal: (text: string, context: string) => Buffer
  },
) {
  const { make, codes, guessLimits, testRecipients } = deps
  const { countedOf, refuse, refuseEarly, paramsOf, drawDigits, answerOf } = createCodeSends(deps)

  return { wayOf, sendWay, refuseEarly }

  /** The facts that limits count of a way; a refusal if it has no route now. Its template was checked when it was read. */
  function wayOf(verification: OpenVerification, way: Way, caller: Caller) {
    const asked = { ...verification, ...way }
    const message = deps.readMessage('captcha', asked, { app: caller.app, isInProcess: true })
    return 'outcome' in message ? message : countedOf(asked, message, caller, verification.lane)
  }

  /** Throws Unavailable if Redis or PostgreSQL is out of reach. */
  async function sendWay(asked: WayAsked): Promise<Made> {
    const { verification, way, noticeId: id, caller, isHuman, answerBy, isRepeated = false } = asked
    const found = wayOf(verification, verification.ways[way] as Way, caller)
    if ('outcome' in found) return found
    const { draft, policy, params, fields } = found
    const begun = { verificationId: verification.id, way, seen: verification.notices.length }
    const sending = { draft, params, caller, policy, fields, asked: {}, answerBy, isRepeated }
    return make({ ...draft, begun, id }, sending, {
      enter: async () => ({ isHuman }),
      refuse: async (limited) => (isRepeated ? limited : refuse(limited, caller)),
      prepare: (notice, taken, requestId) =>
        store(notice, verification, taken, guessLimits.refundOf(policy, fields, requestId)),
      answer: () => answerOf(found, testRecipients.codeOf(draft.to)),
    })
  }

  /** Stores the digits of the way, and before its first way the verification. */
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
    const mayRepeat = fixed !== undefined
    const mine = { noticeId, owner, isFirst, lane, mayRepeat, onPass: fixed ? undefined : onPass }
    taken.add(() => codes.forget(home, noticeId, codeId))
    if (to !== home.to) taken.add(() => codes.forget(owner, noticeId, codeId))
    let code = ''
    let added: Awaited<ReturnType<typeof codes.add>> = 'same'
    for (let draw = 0; added === 'same' && draw < maxDraws; draw++) {
      code = fixed ?? drawDigits()
      added = await codes.add(codeId, home, { ...mine, code })
    }
    if (added === 'gone' || added === 'same') return { outcome: 'code_gone', reason: 'expired' }
    if (isFirst) {
      await deps.store.addVerification({
        ...{ ...verification, ways: verification.ways.length, ttlMs: deps.code.ttlMs },
        sealed: sealFacts(verification, deps.seal),
      })
    }
    return {
      params: paramsOf(scene, locale, code, codeId),
      async afterCommit() {
        if (added === 'pending') await codes.settleCommitted(owner, noticeId, codeId)
      },
    }
  }
}
