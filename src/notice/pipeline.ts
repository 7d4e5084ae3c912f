/**
 * The pipeline of every send, in this order. First the limits decide, so that a refusal costs nothing. Then the notice is
 * committed: from here on, the message will be sent. Each step enters on one list how it is undone. If the send ends
 * without a committed notice, the whole list is undone, last step first.
 *
 * A kind of message adds its own steps around these: a code is stored before its notice is committed.
 */
import { type RequestId, requestIdOf } from '../base/ids.ts'
import type { CanReach } from '../recipient/mail-domains.ts'
import type { Caller } from '../rules/caller.ts'
import type { Fields, Quota } from '../rules/quota.ts'
import { type Limited, limitedBy, type Refused } from '../rules/refused.ts'
import type { CreateNotice, NoticeDraft, Params, PreparedNotice } from './create.ts'
import { type Accepted, acceptedAs, type SendOutcome } from './message.ts'
import type { OncePerKey } from './once-per-key.ts'
import type { NoticeStore } from './store.ts'

/** The list of what a send has taken. */
export interface Taken {
  /** `undo` must not throw, and is not awaited. */
  add(undo: () => void): void
  /** Nothing of the list is undone any more. */
  keep(): void
}

/** A send that is read, and not decided yet. */
export interface Sending {
  draft: Readonly<NoticeDraft>
  params: Params
  caller: Caller
  /** The policy of the limit check, and the values for its keys. */
  policy: string
  fields: Fields
  /** The request, which an Idempotency-Key is bound to. */
  asked: Parameters<OncePerKey['begin']>[1]
  /** By `performance.now()`. */
  answerBy: number
}

export interface Prepared {
  /** Variables of the message besides the caller's. */
  params: Params
  /** Must not throw: the message will be sent. */
  afterCommit(): Promise<void>
}

/** The steps that a kind of message adds. `notice` has the id that the Idempotency-Key is bound to. */
export interface Steps {
  /** Before the limits. Returns whether rules in mode challenge admit the request. */
  enter?(taken: Taken): Promise<{ isHuman: boolean } | Refused>
  /** The answer to a request that the limits refuse. */
  refuse?(limited: Limited): Promise<Refused>
  /** Before the commit. `requestId`: the request that has taken the uses. */
  prepare?(notice: PreparedNotice, taken: Taken, requestId: RequestId): Promise<Prepared>
  /** False if the notice of an earlier request will not be sent. `isOpen`: it has not ended. */
  isAlive?(notice: PreparedNotice, isOpen: boolean): Promise<boolean>
  /** The members of the answer that only this kind has. */
  answer(notice: PreparedNotice): Promise<Partial<Accepted>>
}

export type Send = ReturnType<typeof createPipeline>

export function createPipeline(deps: {
  oncePerKey: Pick<OncePerKey, 'begin'>
  quota: Pick<Quota, 'acquire' | 'release' | 'releaseUnsent' | 'nextInMs'>
  createNotice: CreateNotice
  store: Pick<NoticeStore, 'adopt'>
  canReach: CanReach
  /** PostgreSQL's time. */
  nowMs: () => number
}) {
  const { oncePerKey, quota, createNotice, store, canReach, nowMs } = deps

  /** Throws Unavailable if Redis or PostgreSQL is out of reach; then everything that it took is given back. */
  return async function send(sending: Sending, steps: Steps): Promise<SendOutcome> {
    const { draft, asked, caller, answerBy } = sending
    const begun = await oncePerKey.begin(draft.kind, asked, caller, answerBy)
    if ('outcome' in begun) return begun
    let outcome: SendOutcome | undefined
    try {
      if (begun.earlierId) outcome = await adopt({ ...draft, id: begun.earlierId }, sending, steps)
      outcome ??= await make({ ...draft, id: await begun.newId() }, sending, steps)
      return outcome
    } finally {
      await begun.end(outcome)
    }
  }

  /** The answer for the notice of an earlier request, if that notice was sent or will be sent. Takes no use. */
  async function adopt(
    notice: PreparedNotice,
    { policy, fields }: Sending,
    steps: Steps,
  ): Promise<Accepted | undefined> {
    const row = await store.adopt(notice.app, notice.id)
    if (!row || (await steps.isAlive?.(notice, row.isOpen)) === false) return undefined
    const waitMs = await quota.nextInMs(policy, fields)
    return acceptedAs({ ...notice, ...row }, await steps.answer(notice), nowMs() + waitMs)
  }

  async function make(
    notice: PreparedNotice,
    { policy, fields, params, caller, answerBy }: Sending,
    steps: Steps,
  ): Promise<SendOutcome> {
    const requestId = requestIdOf(notice.id)
    const { taken, giveBack } = createTaken()
    const ofKind = createTaken()
    /** The challenge and the uses of the caller stay taken, because each such request costs a look-up. */
    const refuseUnreachable = () => {
      taken.keep()
      quota.releaseUnsent(policy, fields, requestId)
    }
    try {
      const entry = (await steps.enter?.(taken)) ?? { isHuman: true }
      if ('outcome' in entry) return entry
      const decision = await quota.acquire(policy, fields, requestId, entry.isHuman)
      if (!decision.admitted) {
        const limited = limitedBy(policy, decision)
        return (await steps.refuse?.(limited)) ?? limited
      }
      taken.add(() => quota.release(policy, fields, requestId))
      const answering = steps.answer(notice)
      if (!(await canReach(notice))) {
        refuseUnreachable()
        return { outcome: 'invalid_recipient', because: 'no_server' }
      }
      const prepared = await steps.prepare?.(notice, ofKind.taken, requestId)
      const all = { ...params, ...prepared?.params }
      const created = await createNotice(notice, all, answerBy - performance.now())
      if (typeof created === 'string') {
        refuseUnreachable()
        // A page's visitor may be anyone, and learns no more than that this recipient gets nothing.
        return { outcome: 'destination_not_allowed', ...(caller.isPage ? {} : { reason: created }) }
      }
      taken.keep()
      ofKind.taken.keep()
      await prepared?.afterCommit()
      const resendAtMs = created.createdAt.getTime() + decision.nextInMs
      return acceptedAs(created, await answering, resendAtMs)
    } finally {
      ofKind.giveBack()
      giveBack()
    }
  }
}

function createTaken(): { taken: Taken; giveBack(): void } {
  const undos: (() => void)[] = []
  return {
    taken: {
      add(undo) {
        undos.push(undo)
      },
      keep() {
        undos.length = 0
      },
    },
    giveBack() {
      for (const undo of undos.toReversed()) undo()
    },
  }
}
