/**
 * Verifications with several ways to the person (docs/decisions/0018). A way begins when the way before it ended without
 * success, or when the person asks for it. It never begins by time alone.
 *
 * Redis decides whether the code still lives, and PostgreSQL which way is next. So after a crash at any await, the way has
 * begun once or not at all.
 */

import { type NoticeId, newId } from '../base/ids.ts'
import type { Pipeline } from '../notice/pipeline.ts'
import type { NoticeStore } from '../notice/store.ts'
import type { DueVerification } from '../notice/verifications.ts'
import type { Caller } from '../rules/caller.ts'
import type { Refused } from '../rules/refused.ts'
import type { Challenges } from './challenges.ts'
import type { CodeAsked } from './code-sends.ts'
import type { CodeStore } from './code-store.ts'
import type { SendWay, WayAsked } from './send-way.ts'
import {
  callerOf,
  createReadWorkflow,
  hasNoRoute,
  openVerification,
  type ReadWorkflowDeps,
  type Way,
  type WorkflowAsked,
} from './verification.ts'
import { createVerificationViews, type ViewDeps, type WayOutcome } from './verification-views.ts'

/** `id`: of the verification. */
type NextAsked = Pick<CodeAsked, 'challenge' | 'idempotencyKey'> & { id: string }

export type Workflows = ReturnType<typeof createWorkflows>

export function createWorkflows(
  deps: ReadWorkflowDeps &
    ViewDeps & {
      oncePerKey: { answerBy(): number }
      once: Pipeline['once']
      challenges: Pick<Challenges, 'enter'>
      codes: Pick<CodeStore, 'settle'>
      ways: SendWay
      store: Pick<NoticeStore, 'findVerificationOf' | 'passWay' | 'endVerification' | 'adopt'>
    },
) {
  const readWorkflow = createReadWorkflow(deps)
  const { find, findFor, liveOf, current, answerOf, view } = createVerificationViews(deps)
  const { codes, ways, store } = deps
  const { answerBy: deadline } = deps.oncePerKey

  /** Throws Unavailable if Redis or PostgreSQL is out of reach; then nothing was sent. */
  async function sendWorkflow(asked: WorkflowAsked, caller: Caller): Promise<WayOutcome> {
    const answerBy = deadline()
    const verification = await readWorkflow(asked, caller)
    if ('outcome' in verification) return verification
    const first = ways.wayOf(verification, verification.ways[0] as Way, caller)
    if ('outcome' in first) return first
    const early = await ways.refuseEarly(first, asked, caller, answerBy)
    if (early) return early
    return sendOnce(asked, caller, answerBy, (how) => beginFirst({ verification, ...how }))
  }

  /**
   * Begins the next way, because the person asks for it. A repeat with the same Idempotency-Key gets the same answer.
   * Throws Unavailable; then no way has begun.
   */
  async function next(asked: NextAsked, caller: Caller): Promise<WayOutcome> {
    const answerBy = deadline()
    const verification = await findFor(caller, asked.id)
    if (!verification) return { outcome: 'not_found' }
    const keyed = { ...asked, begins: 'next' }
    return sendOnce(keyed, caller, answerBy, async (how) => {
      const begun = await begin({ verification, ...how })
      return begun.outcome === 'superseded' ? current(asked.id, caller) : begun
    })
  }

  /** Begins the next way of a verification whose latest way ended without success. */
  async function beginDue(due: DueVerification): Promise<void> {
    const verification = openVerification(due, deps.unseal)
    const { id, isPage, ways: all, notices } = verification
    const made = await begin({
      ...{ verification, caller: callerOf(verification), noticeId: due.nextId },
      ...{ isHuman: !isPage, answerBy: deadline(), isRepeated: true },
    })
    if (made.outcome === 'accepted' || made.outcome === 'superseded') return
    if (made.outcome === 'code_gone') return store.endVerification(id, 'gone')
    const rest = { verificationId: id, way: all.length - 1, seen: notices.length }
    await store.passWay(rest, null)
  }

  /** Sends a way once per Idempotency-Key. The answer to a challenge is given back if nothing was sent. */
  function sendOnce(
    asked: Pick<CodeAsked, 'challenge' | 'idempotencyKey'>,
    caller: Caller,
    answerBy: number,
    run: (how: Omit<WayAsked, 'verification' | 'way'>) => Promise<WayOutcome>,
  ): Promise<WayOutcome> {
    return deps.once<WayOutcome>(
      { kind: 'captcha', asked, caller, answerBy },
      (noticeId) => adopt(caller, noticeId),
      async (noticeId) => {
        const entry = await deps.challenges.enter(caller, asked.challenge)
        if ('outcome' in entry) return entry
        let outcome: WayOutcome | undefined
        try {
          outcome = await run({ noticeId, caller, isHuman: entry.isHuman, answerBy })
          return outcome
        } finally {
          if (outcome?.outcome !== 'accepted') entry.giveBack()
        }
      },
    )
  }

  /** The answer for the notice of an earlier request, if its verification still lives. */
  async function adopt(caller: Caller, noticeId: NoticeId): Promise<WayOutcome | undefined> {
    const { app } = caller
    const row = await store.findVerificationOf(app, noticeId)
    if (!row) return undefined
    const { id, ways: all } = openVerification(row, deps.unseal)
    const adopted = await store.adopt(app, noticeId)
    const way = all[row.notices.indexOf(noticeId)]
    // Without its code, an open notice will not be sent.
    if (adopted?.isOpen && way) await codes.settle({ ...row, ...way }, noticeId, id)
    const now = await current(id, caller)
    return now.outcome === 'accepted' ? now : undefined
  }

  /** Begins a verification with its first way. A way to an address that must get nothing is left out. */
  async function beginFirst(how: Omit<WayAsked, 'way'>): Promise<WayOutcome> {
    const { verification } = how
    const made = await ways.sendWay({ ...how, way: 0 })
    if (made.outcome === 'accepted') return answerOf(verification, 0, made)
    if (made.outcome === 'superseded') throw new Error('a new verification had a way already')
    const [, ...left] = verification.ways
    if (left.length === 0 || made.outcome !== 'destination_not_allowed') return made
    return beginFirst({
      ...how,
      verification: { ...verification, id: newId(deps.nowMs()), ways: left },
    })
  }

  /** Begins the first of the ways left that nothing refuses, while the code lives. Of several refusals, the shortest counts. */
  async function begin(
    how: Omit<WayAsked, 'way'>,
  ): Promise<WayOutcome | { outcome: 'superseded' }> {
    const { verification } = how
    const live = await liveOf(verification)
    if ('outcome' in live) return live
    const refusals: Refused[] = []
    for (let way = verification.notices.length; way < verification.ways.length; way++) {
      const made = await ways.sendWay({ ...how, way })
      switch (made.outcome) {
        case 'accepted':
          return answerOf(verification, way, made)
        case 'superseded':
        case 'code_gone':
        case 'challenge_required':
          return made
        default:
          if (!hasNoRoute(made)) refusals.push(made)
      }
    }
    const [soonest] = refusals.toSorted((one, other) => waitOf(one) - waitOf(other))
    return soonest ?? { outcome: 'no_more_ways' }
  }

  return { sendWorkflow, next, current, beginDue, find, view }
}

const waitOf = (refused: Refused): number =>
  refused.outcome === 'limited' || refused.outcome === 'locked'
    ? refused.retryAfterMs
    : Number.MAX_SAFE_INTEGER
