/**
 * The pipeline of every send, in this order. First the limits decide, so that a refusal costs nothing. Then the notice is
 * committed: from here on, the message will be sent. Each step enters on one list how it is undone. If the send ends
 * without a committed notice, the whole list is undone, last step first.
 *
 * A kind of message adds its own steps around these: a code is stored before its notice is committed.
 */
import { type NoticeId, type RequestId, requestIdOf } from '../base/ids.ts'
import type { CanReach } from '../recipient/mail-domains.ts'
import type { Caller } from '../rules/caller.ts'
import type { Fields, Quota } from '../rules/quota.ts'
import { type Limited, limitedBy, type Refused } from '../rules/refused.ts'
import type { CreateNotice, Params, PreparedNotice } from './create.ts'
import type { NoticeDraft } from './insert.ts'
import { type Accepted, acceptedOf, type SendOutcome } from './message.ts'
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
  /**
   * No caller waits for the outcome, and after an error the same notice is made again. So nothing is given back, and its uses are
   * taken once.
   */
  isRepeated?: boolean
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
  prepare?(notice: PreparedNotice, taken: Taken, requestId: RequestId): Promise<Prepared | Refused>
  /** False if the notice of an earlier request will not be sent. `isOpen`: it has not ended. */
  isAlive?(notice: PreparedNotice, isOpen: boolean): Promise<boolean>
  /** The members of the answer that only this kind has. */
  answer(notice: PreparedNotice): Promise<Partial<Accepted>>
}

/** `superseded`: another request has begun this way of a verification, or the verification has ended. */
export type Made = SendOutcome | { outcome: 'superseded' }

export type Pipeline = ReturnType<typeof createPipeline>
export type Send = Pipeline['send']

export function createPipeline(deps: {
  oncePerKey: Pick<OncePerKey, 'begin'>
  quota: Pick<Quota, 'acquire' | 'acquireOnce' | 'release' | 'releaseUnsent' | 'nextInMs'>
  createNotice: CreateNotice
  store: Pick<NoticeStore, 'adopt'>
  canReach: CanReach
  /** PostgreSQL's time. */
  nowMs: () => number
}) {
  const { oncePerKey, quota, createNotice, store, canReach, nowMs } = deps

  return { once, send, make }

  /** Answers a repeat with the same key as the first request. Otherwise it adopts the notice of that request, or makes one. */
  async function once<Outcome extends { outcome: string }>(
    request: Pick<Sending, 'asked' | 'caller' | 'answerBy'> & Pick<NoticeDraft, 'kind'>,
    adoptEarlier: (id: NoticeId) => Promise<Outcome | undefined>,
    makeNew: (id: NoticeId) => Promise<Outcome>,
  ): Promise<Outcome> {
    const { kind, asked, caller, answerBy } = request
    const begun = await oncePerKey.begin(kind, asked, caller, answerBy)
    // Only a request of the same kind has the same text, so a stored answer is of its kind too.
    if ('outcome' in begun) return begun as Outcome
    let outcome: Outcome | undefined
    try {
      if (begun.earlierId) outcome = await adoptEarlier(begun.earlierId)
      outcome ??= await makeNew(await begun.newId())
      return outcome
    } finally {
      await begun.end(outcome)
    }
  }

  /** Throws Unavailable if Redis or PostgreSQL is out of reach; then everything that it took is given back. */
  async function send(sending: Sending, steps: Steps): Promise<SendOutcome> {
    const { draft } = sending
    const made = await once<Made>(
      { ...sending, kind: draft.kind },
      (id) => adopt({ ...draft, id }, sending, steps),
      (id) => make({ ...draft, id }, sending, steps),
    )
    if (made.outcome === 'superseded') throw new Error(`${draft.kind} began a way`)
    return made
  }

  /** The answer for the notice of an earlier request, if that notice was sent or will be sent. Takes no use. */
  async function adopt(
    notice: PreparedNotice,
    { policy, fields }: Sending,
    steps: Steps,
  ): Promise<Accepted | undefined> {
    const row = await store.adopt(notice.app, notice.id)
    if (!row || (await steps.isAlive?.(notice, row.isOpen)) === false) return undefined
    const retryInMs = await quota.nextInMs(policy, fields)
    return acceptedOf({ ...notice, ...row }, await steps.answer(notice), nowMs() + retryInMs)
  }

  async function make(
    notice: PreparedNotice,
    { policy, fields, params, caller, answerBy, isRepeated = false }: Sending,
    steps: Steps,
  ): Promise<Made> {
    const requestId = requestIdOf(notice.id)
    const { taken, giveBack } = createTaken()
    const ofKind = createTaken()
    const keepAll = () => {
      taken.keep()
      ofKind.taken.keep()
    }
    /** The challenge and the uses of the caller stay taken, because each such request costs a look-up. */
    const refuseUnreachable = () => {
      taken.keep()
      quota.releaseUnsent(policy, fields, requestId)
    }
    try {
      const entry = (await steps.enter?.(taken)) ?? { isHuman: true }
      if ('outcome' in entry) return entry
      const take = isRepeated ? quota.acquireOnce : quota.acquire
      const decision = await take(policy, fields, requestId, entry.isHuman)
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
      if (prepared && 'outcome' in prepared) return prepared
      const all = { ...params, ...prepared?.params }
      const created = await createNotice(notice, all, answerBy - performance.now())
      if (created === 'superseded') {
        if (isRepeated) keepAll()
        return { outcome: created }
      }
      if (typeof created === 'string') {
        refuseUnreachable()
        // A page's visitor may be anyone, and learns no more than that this recipient gets nothing.
        return { outcome: 'destination_not_allowed', ...(caller.isPage ? {} : { reason: created }) }
      }
      keepAll()
      await prepared?.afterCommit()
      const resendAtMs = created.createdAt.getTime() + decision.nextInMs
      return acceptedOf(created, await answering, resendAtMs)
    } catch (error) {
      if (isRepeated) keepAll()
      throw error
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
