/**
 * A send is made once per Idempotency-Key. The key is reserved in PostgreSQL before the limit check.
 * Otherwise a repeat would be refused by its own first count. The answer is stored for repeats, because a notice's row
 * has neither `resendAt` nor a lock of checks. A test recipient's send has no row at all.
 *
 * Any visitor may send with the key of a page. So pages reserve a limited number of keys at a time, and a flood of
 * them leaves connections of the pool to servers. Apps share the turns, and an app's visitors share its turns. A
 * refused send costs two statements, one to reserve and one to free. A send without a turn costs none.
 */
import { canonicalRecord } from '../base/canonical.ts'
import { orLate } from '../base/deadline.ts'
import type { IdempotencyKey, NoticeId } from '../base/ids.ts'
import { createTurns } from '../base/turns.ts'
import { Overloaded, Unavailable } from '../base/unavailable.ts'
import type { Caller } from '../rules/caller.ts'
import type { Idempotency } from './idempotency.ts'
import type { Accepted, SendOutcome } from './message.ts'
import type { NoticeKind } from './states.ts'

/**
 * Time limit for the steps of one key. Every request must get its answer within 2.5 s, even when servers are away. That
 * leaves 0.3 s for all other work.
 */
const answerTimeoutMs = 2_200
const turnsOfPages = { maxUnderWay: 2, maxWaiting: 200, maxWaitMs: 1_000 }

/** The request, with all its members. */
interface KeyedAsked {
  idempotencyKey?: IdempotencyKey | undefined
  challenge?: string | undefined
  known?: string | undefined
  codeDigests?: readonly string[] | undefined
}

/** A send that nothing has answered yet. The caller must end it. */
interface Begun {
  /**
   * The notice of an earlier request that never answered. If it was sent or will be sent, the send is answered with it.
   */
  earlierId: NoticeId | undefined
  /** The id for a new notice. The key is bound to it. */
  newId(): Promise<NoticeId>
  /**
   * Stores an accepted answer for repeats, and frees the key after anything else. Never throws, because after a sent
   * message the caller never gets an error: if the answer is not stored, a repeat finds the notice.
   */
  end(outcome: { outcome: string } | undefined): Promise<void>
}

export type OncePerKey = ReturnType<typeof createOncePerKey>

export function createOncePerKey(idempotency: Idempotency) {
  const inTurn = createTurns(turnsOfPages)

  return {
    /** The deadline for the answer to a request that begins now, by `performance.now()`. */
    answerBy: () => performance.now() + answerTimeoutMs,

    /** True if the key is unused now. All callers share one statement at a time, which writes nothing. */
    async isNew(key: IdempotencyKey, caller: Caller, answerBy: number): Promise<boolean> {
      const looking = idempotency.isKnown(caller.app, scopedKey(key, caller))
      return !(await untilLate(looking, answerBy, notInTime))
    },

    /**
     * Returns the stored answer for a repeat. Otherwise reserves the key. Without a key every request is new.
     *
     * Two members of the body may differ in a repeat. A request that died has used up its answer to a challenge, so the
     * repeat has another answer. The token of a known browser may be a newer one.
     *
     * `codeDigests` stand for the code, because the key's row outlives the code and must not show it. There is one per
     * secret in use, the current secret first: a repeat may come after a rotation of `SECRET`.
     */
    async begin(
      kind: NoticeKind,
      { idempotencyKey, challenge: _, known: __, codeDigests, ...asked }: KeyedAsked,
      caller: Caller,
      answerBy: number,
    ): Promise<Begun | SendOutcome> {
      const id = idempotency.newNoticeId()
      if (idempotencyKey === undefined) {
        return { earlierId: undefined, newId: async () => id, end: async () => {} }
      }
      const { app } = caller
      const key = scopedKey(idempotencyKey, caller)
      let isTried = false
      let isOver = false
      async function reserve() {
        // The turn came after the answer, so nothing would free the key.
        if (isOver) notInTime()
        isTried = true
        const requests = (codeDigests ?? [undefined]).map((code) =>
          textOf(kind, { ...asked, code }),
        )
        return idempotency.reserve(app, key, requests, id)
      }
      const free = (boundTo: NoticeId) =>
        untilLate(idempotency.free(app, key, boundTo), answerBy, () => {})
      const reserving = caller.isPage
        ? inTurn({ app, caller: caller.ip }, reserve, noTurn)
        : reserve()
      const reserved = await untilLate(reserving, answerBy, notInTime).catch(async (error) => {
        isOver = true
        // Also frees a reservation that PostgreSQL has not confirmed, because it may exist.
        if (isTried) await free(id)
        throw error
      })
      if (reserved.kind === 'in_progress') return { outcome: 'idempotency_in_progress' }
      if (reserved.kind === 'reused') return { outcome: 'idempotency_key_reused' }
      if (reserved.kind === 'answered') return reserved.answer as Accepted
      const earlierId = reserved.kind === 'taken_over' ? reserved.earlierId : undefined
      /** The notice to which the key is bound. */
      let boundTo = earlierId ?? id
      /** Also frees a binding that PostgreSQL has not confirmed, because it may exist. */
      const freeAll = async () => {
        await Promise.all([...new Set([boundTo, id])].map(free))
      }
      return {
        earlierId,
        async newId() {
          if (boundTo !== id) await idempotency.rename(app, key, boundTo, id)
          boundTo = id
          return id
        },
        end: (outcome) =>
          outcome?.outcome === 'accepted'
            ? untilLate(idempotency.keep(app, key, boundTo, outcome), answerBy, () => {})
            : freeAll(),
      }
    },
  }
}

/** Waits for `work` until `answerBy`; then the work continues in the background. */
const untilLate = <Result>(work: Promise<Result>, answerBy: number, late: () => Result) =>
  orLate(work, Math.max(0, answerBy - performance.now()), late)

function notInTime(): never {
  throw new Unavailable('postgresql', undefined, 'the Idempotency-Key was not reserved in time')
}

function noTurn(): never {
  throw new Overloaded('postgresql', 'too many pages wait for their Idempotency-Key')
}

/** A text that is the same for equal requests. */
function textOf(kind: NoticeKind, asked: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(asked).filter(([, value]) => value !== undefined)
  return `${kind} ${canonicalRecord(Object.fromEntries(given))}`
}

/**
 * A server's Idempotency-Key belongs to its app, also after a rotation of its API key. Anyone who reads a page has its
 * API key and may send any Idempotency-Key. So pages get a separate range of keys: given keys contain no space.
 */
const scopedKey = (given: IdempotencyKey, { keyId, isPage }: Caller): IdempotencyKey =>
  isPage ? `${keyId} ${given}` : given
