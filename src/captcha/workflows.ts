/**
 * Verifications with several ways to the person (docs/decisions/0018). A way begins when the way before it ended without
 * success, or when the person asks for it. It never begins by time alone.
 *
 * Redis decides whether the code still lives, and PostgreSQL which way is next. So after a crash at any await, the way has
 * begun once or not at all.
 */

import { type NoticeId, newId } from '../base/ids.ts'
import type { Made, Pipeline } from '../notice/pipeline.ts'
import type { NoticeStore } from '../notice/store.ts'
import type { DueVerification } from '../notice/verifications.ts'
import type { Caller } from '../rules/caller.ts'
import type { Limited, Refused } from '../rules/refused.ts'
import type { Challenges } from './challenges.ts'
import type { LiveCode } from './code-answers.ts'
import type { CodeStore } from './code-store.ts'
import {
  createReadWorkflow,
  hasNoRoute,
  type ReadWorkflowDeps,
  type WorkflowAsked,
} from './read-workflow.ts'
import type { RefuseEarly } from './refuse-early.ts'
import type { SendWay, WayAsked } from './send-way.ts'
import {
  callerOf,
  homeOf,
  type OpenVerification,
  openVerification,
  type Way,
} from './verification.ts'
import { type AcceptedWay, createVerificationViews, type ViewDeps } from './verification-views.ts'

export type WayOutcome = AcceptedWay | Refused

export type Workflows = ReturnType<typeof createWorkflows>

export function createWorkflows(
  deps: ReadWorkflowDeps &
    ViewDeps & {
      oncePerKey: { answerBy(): number }
      once: Pipeline['once']
      refuseEarly: RefuseEarly
      challenges: Pick<Challenges, 'enter'>
      codes: Pick<CodeStore, 'look' | 'settle'>
      ways: SendWay
      store: Pick<NoticeStore, 'findVerificationOf' | 'passWay' | 'endVerification' | 'adopt'>
    },
) {
  const readWorkflow = createReadWorkflow(deps)
  const { find, currentAnswer, answerNow, answerOf, view } = createVerificationViews(deps)
  const { once, challenges, codes, ways, store } = deps
  const { answerBy: deadline } = deps.oncePerKey

  /** Throws Unavailable if Redis or PostgreSQL is out of reach; then nothing was sent. */
  async function sendWorkflow(asked: WorkflowAsked, caller: Caller): Promise<WayOutcome> {
    const answerBy = deadline()
    const read = await readWorkflow(asked, caller)
    if ('outcome' in read) return read
    const { challenge, idempotencyKey } = asked
    const first = ways.wayOf(read, read.ways[0] as Way, caller)
    if ('outcome' in first) return first
    const early = await deps.refuseEarly({ ...first, challenge, idempotencyKey }, caller, answerBy)
    if (early) return ways.refuse(early, caller)
    return once<WayOutcome>(
      { kind: 'captcha', asked: { ...asked }, caller, answerBy },
      (noticeId) => adopt(caller.app, noticeId),
      (noticeId) =>
        entered(challenge, caller, (isHuman) =>
          beginFirst({ verification: read, caller, noticeId, isHuman, answerBy }),
        ),
    )
  }

  /** Begins a verification with its first way. A way to an address that must get nothing is left out. */
  async function beginFirst(how: Omit<WayAsked, 'way'>): Promise<WayOutcome> {
    const made = await ways.sendWay({ ...how, way: 0 })
    if (made.outcome === 'accepted') return answerOf(how.verification, 0, made)
    const [, ...left] = how.verification.ways
    if (left.length === 0 || made.outcome !== 'destination_not_allowed') return refusalOf(made)
    const verification = { ...how.verification, id: newId(deps.nowMs()), ways: left }
    return beginFirst({ ...how, verification })
  }

  /**
   * Begins the next way, because the person asks for it. A repeat with the same Idempotency-Key gets the same answer.
   * Throws Unavailable; then no way has begun.
   */
  async function next(
    asked: { id: string; challenge?: string | undefined; idempotencyKey?: string | undefined },
    caller: Caller,
  ): Promise<WayOutcome> {
    const answerBy = deadline()
    const { id, challenge } = asked
    const found = await findFor(caller, id)
    if (!found) return { outcome: 'not_found' }
    const keyed = { ...asked, begins: 'next' }
    return once<WayOutcome>(
      { kind: 'captcha', asked: keyed, caller, answerBy },
      (noticeId) => adopt(caller.app, noticeId),
      (noticeId) =>
        entered(challenge, caller, async (isHuman) => {
          const live = await liveOf(found)
          if ('outcome' in live) return live
          const how = { verification: found, caller, noticeId, isHuman, answerBy }
          const begun = await begin(how)
          if (begun.outcome !== 'superseded') return begun
          return (await currentAnswer(caller.app, id)) ?? { outcome: 'code_gone', reason: 'used' }
        }),
    )
  }

  /** The latest way. Changes nothing, so a page can ask whether a failure began the next way. */
  async function current(id: string, caller: Caller): Promise<WayOutcome> {
    const found = await findFor(caller, id)
    if (!found) return { outcome: 'not_found' }
    const live = await liveOf(found)
    if ('outcome' in live) return live
    return (await answerNow(found, live)) ?? { outcome: 'not_found' }
  }

  /** A page finds only verifications that a page began. */
  async function findFor(caller: Caller, id: string): Promise<OpenVerification | undefined> {
    const found = await find(caller.app, id)
    return caller.isPage && !found?.isPage ? undefined : found
  }

  /** The code of a verification that is not over. */
  async function liveOf(verification: OpenVerification): Promise<LiveCode | Refused> {
    const live = await codes.look(homeOf(verification), verification.id)
    if (live.result === 'gone') return { outcome: 'code_gone', reason: live.reason }
    return triesIn(live, verification) > 0 ? live : { outcome: 'code_gone', reason: 'tries' }
  }

  /** Runs a send with the answer to a challenge. It is given back if nothing was sent. */
  async function entered(
    challenge: string | undefined,
    caller: Caller,
    run: (isHuman: boolean) => Promise<WayOutcome>,
  ): Promise<WayOutcome> {
    const entry = await challenges.enter(caller, challenge)
    if ('outcome' in entry) return entry
    let outcome: WayOutcome | undefined
    try {
      outcome = await run(entry.isHuman)
      return outcome
    } finally {
      if (outcome?.outcome !== 'accepted') entry.giveBack()
    }
  }

  /** Begins the first of the ways left that nothing refuses. */
  async function begin(
    how: Omit<WayAsked, 'way'>,
  ): Promise<WayOutcome | { outcome: 'superseded' }> {
    const { verification } = how
    let refusal: Refused | undefined
    for (let way = verification.notices.length; way < verification.ways.length; way++) {
      const made = await ways.sendWay({ ...how, way })
      if (made.outcome === 'accepted') return answerOf(verification, way, made)
      const endsAll = ['superseded', 'code_gone', 'challenge_required'].includes(made.outcome)
      if (endsAll) return made as Refused
      const refused = refusalOf(made)
      if (!hasNoRoute(refused)) refusal = shorter(refusal, refused)
    }
    return refusal ?? { outcome: 'no_more_ways' }
  }

  /** Begins the next way of a verification whose latest way ended without success. */
  async function beginDue(due: DueVerification): Promise<void> {
    const verification = openVerification(due, deps.unseal)
    const { id, isPage, ways: all, notices } = verification
    if ('outcome' in (await liveOf(verification))) return store.endVerification(id, 'gone')
    const made = await begin({
      ...{ verification, caller: callerOf(verification), noticeId: due.nextId },
      ...{ isHuman: !isPage, answerBy: deadline(), isRepeated: true },
    })
    if (made.outcome === 'accepted' || made.outcome === 'superseded') return
    if (made.outcome === 'code_gone') return store.endVerification(id, 'gone')
    const rest = { verificationId: id, way: all.length - 1, seen: notices.length }
    await store.passWay(rest, null)
  }

  /** The answer for the notice of an earlier request, if its verification still lives. */
  async function adopt(app: string, noticeId: NoticeId): Promise<AcceptedWay | undefined> {
    const row = await store.findVerificationOf(app, noticeId)
    if (!row) return undefined
    const { id, ways: all } = openVerification(row, deps.unseal)
    const adopted = await store.adopt(app, noticeId)
    const way = all[row.notices.indexOf(noticeId)]
    // Without its code, an open notice will not be sent.
    if (adopted?.isOpen && way) await codes.settle({ ...row, ...way }, noticeId, id)
    return currentAnswer(app, id)
  }

  return { sendWorkflow, next, current, beginDue, find, view }
}

/** The tries that the lane of the person has left. */
const triesIn = ({ triesLeft, knownTriesLeft }: LiveCode, { lane }: OpenVerification): number =>
  lane === 'known' ? knownTriesLeft : triesLeft

function refusalOf(made: Made): Refused {
  if (made.outcome === 'accepted' || made.outcome === 'superseded') {
    throw new Error(`a way was not refused: ${made.outcome}`)
  }
  return made
}

const waitOf = (refused: Refused | undefined): number =>
  refused && 'retryAfterMs' in refused
    ? (refused as Limited).retryAfterMs
    : Number.POSITIVE_INFINITY

/** The refusal with the shorter wait. */
const shorter = (one: Refused | undefined, other: Refused): Refused =>
  one && waitOf(one) <= waitOf(other) ? one : other
