/**
 * A send is carried out once per Idempotency-Key. Keys are reserved in PostgreSQL before the limits are asked, or a
 * repeat would be refused by what it counted itself. What was accepted is remembered for repeats, because a notice's row
 * has neither `resendAt` nor a lock of checks, and a test recipient's send has no row.
 *
 * Any visitor may send with the key of a page: pages reserve so many at a time, so that a flood of them leaves
 * the other connections of the pool to servers. Apps share the turns, and within an app its visitors do. A
 * refused send costs two statements, one to reserve and one to free; one that got no turn costs none.
 */
import { canonicalRecord } from '../base/canonical.ts'
import { orLate } from '../base/deadline.ts'
import { createTurns } from '../base/turns.ts'
import { Overloaded, Unavailable } from '../base/unavailable.ts'
import type { Caller } from '../rules/quota.ts'
import type { Refused } from '../rules/refused.ts'
import type { Idempotency } from './idempotency.ts'
import type { Accepted, SendAsked, SendOutcome } from './message.ts'

/** An answer is promised within 2.5 s, whatever is away; between deciding and answering little happens. */
const answerWithinMs = 2_200
const turnsOfPages = { maxUnderWay: 2, maxWaiting: 200, maxWaitMs: 1_000 }

/** A request's own try at making a notice. */
export interface Attempt {
  /** The notice of an earlier request with this key that never answered. If it was sent or will be, it is the answer. */
  earlierId?: string
  /** The id of the notice to make. From then on the key stands for it. */
  claimId(): Promise<string>
  /** Must follow: remembers what was accepted, and frees the key after anything else. Never throws. */
  end(outcome: SendOutcome | undefined): Promise<void>
}

export type OncePerKey = ReturnType<typeof createOncePerKey>

export function createOncePerKey(idempotency: Idempotency) {
  const inTurn = createTurns(turnsOfPages)

  return {
    /** By `performance.now()`: when the caller of a request that begins now is owed an answer. */
    answerBy: () => performance.now() + answerWithinMs,

    /** Whether the key stands for nothing, now. Any number of callers share one statement at a time, which writes nothing. */
    async isNew(key: string, caller: Caller, answerBy: number): Promise<boolean> {
      const looking = idempotency.isKnown(caller.app, scopedKey(key, caller))
      return !(await untilLate(looking, answerBy, notInTime))
    },

    /**
     * A repeat's answer, or the attempt to make a notice. Without a key there is nothing to repeat. The answer to a
     * challenge is no part of what is asked for: one whose request died is used up, and a repeat must bring another.
     */
    async begin(
      kind: 'captcha' | 'notice',
      { idempotencyKey, challenge: _, ...asked }: SendAsked & { challenge?: string | undefined },
      caller: Caller,
      answerBy: number,
    ): Promise<Attempt | Accepted | Refused> {
      const id = idempotency.newNoticeId()
      if (idempotencyKey === undefined) return { claimId: async () => id, end: async () => {} }
      const { app } = caller
      const key = scopedKey(idempotencyKey, caller)
      let isTried = false
      function reserve() {
        isTried = true
        return idempotency.reserve(app, key, textOf(kind, asked), id)
      }
      const free = (standsFor: string) =>
        untilLate(idempotency.free(app, key, standsFor), answerBy, () => {})
      const reserving = caller.isPage
        ? inTurn({ app, caller: caller.ip }, reserve, noTurn)
        : reserve()
      const reservation = await untilLate(reserving, answerBy, notInTime).catch(async (error) => {
        // Also a reservation of which nothing was heard may be there.
        if (isTried) await free(id)
        throw error
      })
      if (reservation.kind === 'in_progress') return { outcome: 'idempotency_in_progress' }
      if (reservation.kind === 'reused') return { outcome: 'idempotency_key_reused' }
      if (reservation.kind === 'answered') {
        // Builds before the first release kept the answer by HTTP.
        const { body, ...kept } = reservation.answer as Accepted & { body?: Accepted }
        return body ? { ...body, outcome: 'accepted' } : kept
      }
      const earlierId = reservation.kind === 'taken_over' ? reservation.earlierId : undefined
      let standsFor = earlierId ?? id
      return {
        ...(earlierId ? { earlierId } : {}),
        async claimId() {
          if (standsFor !== id) await idempotency.rename(app, key, standsFor, id)
          standsFor = id
          return id
        },
        async end(outcome) {
          if (outcome?.outcome !== 'accepted') return free(standsFor)
          // What was sent is never answered with an error: when this fails, a repeat finds the notice itself.
          await untilLate(idempotency.keep(app, key, standsFor, outcome), answerBy, () => {})
        },
      }
    },
  }
}

/** What goes on while the caller is answered. */
const untilLate = <Result>(work: Promise<Result>, answerBy: number, late: () => Result) =>
  orLate(work, Math.max(0, answerBy - performance.now()), late)

function notInTime(): never {
  throw new Unavailable('postgresql', undefined, 'the Idempotency-Key was not reserved in time')
}

function noTurn(): never {
  throw new Overloaded('postgresql', 'too many pages wait for their Idempotency-Key')
}

function textOf(kind: 'captcha' | 'notice', asked: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(asked).filter(([, value]) => value !== undefined)
  // Spelled as the first builds did: their keys live for a day.
  return `/v1/${kind}s ${canonicalRecord(Object.fromEntries(given))}`
}

/**
 * A server's Idempotency-Key stands for its app, also over a rotation of its key. Whoever reads a page has its key
 * and may write any Idempotency-Key: theirs never meet a server's. A space is in none.
 */
const scopedKey = (given: string, { keyId, isPage }: Caller) =>
  isPage ? `${keyId} ${given}` : given
