/**
 * `Idempotency-Key` for the routes that make a notice: a repeated request gets the first answer and makes no
 * second message. What a key stands for, and for how long, is kept by src/notice/idempotency.ts.
 */
import type { ApiKey } from '../access/api-keys.ts'
import { canonicalRecord } from '../base/canonical.ts'
import { orLate } from '../base/deadline.ts'
import { Overloaded, Problem, Unavailable } from '../base/problems.ts'
import { createTurns } from '../base/turns.ts'
import type { Idempotency } from '../notice/idempotency.ts'
import { type Answer, invalid } from './problem.ts'
import type { RouteRequest, SendAttempt, SendRoute } from './route.ts'

/** An answer is promised within 2.5 s, whatever is away; between deciding and answering little happens. */
const answerWithinMs = 2_200

/**
 * Keys are reserved in PostgreSQL before the limits are asked, or a repeat would be refused by what it counted
 * itself. Anybody may send with the key of a page: pages reserve so many at a time, so that a flood of them leaves
 * the other connections of the pool to servers. Apps share the turns, and within an app its visitors do. A
 * refused send costs two statements, one to reserve and one to free; one that got no turn costs none.
 *
 * A visitor whose request is known to be refused takes no turn: it is refused from memory, unless its key stands for
 * something already, so that the repeat of an accepted send gets the first answer.
 */
const turnsOfPages = { maxUnderWay: 2, maxWaiting: 200, maxWaitMs: 1_000 }

export function createOncePerKey(idempotency: Idempotency) {
  const inTurn = createTurns(turnsOfPages)

  /** Sends once per key; without one, simply sends. */
  return function oncePerKey(route: SendRoute, request: RouteRequest): Promise<Answer | Problem> {
    const given = request.headers['idempotency-key'] as string | undefined
    const attempt = { id: idempotency.newNoticeId(), answerBy: performance.now() + answerWithinMs }
    return given === undefined
      ? route.send(request, attempt)
      : sendOnce(route, request, given, attempt)
  }

  async function sendOnce(
    route: SendRoute,
    request: RouteRequest,
    given: string,
    attempt: SendAttempt,
  ): Promise<Answer | Problem> {
    if (!/^[\x21-\x7e]{1,255}$/.test(given)) {
      throw invalid('Idempotency-Key', 'is 1 to 255 visible ASCII characters')
    }
    const { app } = request.key
    const key = scopedKey(request.key, given)
    // The answer to a challenge is no part of what is asked for: one whose request died is used up, and a repeat
    // must bring another.
    const { challenge, ...body } = request.body as Record<string, unknown>
    const asked = `${route.path} ${canonicalRecord(body)}`
    /** What goes on while the caller is answered. */
    const inTime = <Result>(work: Promise<Result>, late: () => Result) =>
      orLate(work, Math.max(0, attempt.answerBy - performance.now()), late)

    let id = attempt.id
    let isTried = false
    function reserve() {
      isTried = true
      return idempotency.reserve(app, key, asked, attempt.id)
    }
    const reserveInTurn = () =>
      inTurn({ app, caller: request.ip }, reserve, () => {
        throw new Overloaded('postgresql', 'too many pages wait for their Idempotency-Key')
      })
    let answer: Answer | Problem | null = null
    try {
      const refusal =
        request.key.kind === 'publishable'
          ? await inTime(refuseFromMemory(route, request, attempt, key), notInTime)
          : undefined
      if (refusal) return refusal
      const reservation = await inTime(
        request.key.kind === 'publishable' ? reserveInTurn() : reserve(),
        notInTime,
      )
      if (reservation.kind === 'in_progress') return new Problem('idempotency_in_progress')
      if (reservation.kind === 'reused') return new Problem('idempotency_key_reused')
      if (reservation.kind === 'answered') return reservation.answer as Answer
      if (reservation.kind === 'taken_over') {
        id = reservation.earlierId
        answer = await route.adopt(request, { ...attempt, id })
        if (!answer) {
          await idempotency.rename(app, key, id, attempt.id)
          id = attempt.id
        }
      }
      answer ??= await route.send(request, attempt)
    } catch (error) {
      // Also a reservation of which nothing was heard may be there.
      if (isTried) await inTime(idempotency.free(app, key, id), () => {})
      throw error
    }
    // What was sent is never answered with an error: when this fails, a repeat finds the notice itself.
    await inTime(
      answer instanceof Problem
        ? idempotency.free(app, key, id)
        : idempotency.keep(app, key, id, answer),
      () => {},
    )
    return answer
  }

  async function refuseFromMemory(
    route: SendRoute,
    request: RouteRequest,
    attempt: SendAttempt,
    key: string,
  ): Promise<Problem | undefined> {
    const refuse = recall(route, request, attempt)
    if (!refuse || (await idempotency.isKnown(request.key.app, key))) return undefined
    return refuse()
  }
}

function recall(route: SendRoute, request: RouteRequest, attempt: SendAttempt) {
  try {
    return route.recall?.(request, attempt)
  } catch (error) {
    // What is wrong with the request is said after what is wrong with its key.
    if (error instanceof Problem) return undefined
    throw error
  }
}

function notInTime(): never {
  throw new Unavailable('postgresql', undefined, 'the Idempotency-Key was not reserved in time')
}

/**
 * A server's Idempotency-Key stands for its app, also over a rotation of its key. Whoever reads a page has its key
 * and may write any Idempotency-Key: theirs never meet a server's. A space is in none.
 */
const scopedKey = ({ id, kind }: Readonly<ApiKey>, given: string) =>
  kind === 'publishable' ? `${id} ${given}` : given
