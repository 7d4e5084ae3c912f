/**
 * Whether a caller has shown to be human. An answer opens one request: it is taken in Redis before that
 * request asks the limits, and given back when the request came to nothing, so that nobody solves twice for
 * a fault of ours or a limit. An answer whose request died with its process stays taken until its end; the next
 * request of that person is asked for another.
 */
import { randomUUID } from 'node:crypto'
import { Overloaded, Unavailable } from '../base/problems.ts'
import { returnOnce, takeOnce } from '../base/redis-once.ts'
import type { RedisClient } from '../base/redis-script.ts'
import { createTurns } from '../base/turns.ts'
import { createUntilAnswered } from '../base/until-answered.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Asked, ChallengeKind, Offer } from './challenge-kind.ts'
import { createPressure } from './pressure.ts'

export type Taken =
  /** Opens this request. `giveBack`: now, or when Redis answers again. */
  { kind: 'taken'; giveBack(): void } | { kind: 'malformed' } | { kind: 'refused' }

export type Challenges = ReturnType<typeof createChallenges>

/** No answer could be given again after it. */
const maxAgeMs = 600_000
const maxUnanswered = 10_000
/** Anybody may make a token up, and each is asked about. A send must still be answered after the wait. */
const turnsAtVendor = { maxUnderWay: 32, maxWaiting: 64, maxWaitMs: 300 }

export function createChallenges(deps: {
  kind: ChallengeKind
  redis: RedisClient
  keyPrefix: string
  metrics: Pick<Metrics, 'challenges'>
}) {
  const { kind, redis, keyPrefix, metrics } = deps
  const pressure = createPressure()
  const inTurn = createTurns(turnsAtVendor)
  const unanswered = createUntilAnswered({ maxAgeMs, maxEntries: maxUnanswered })

  const giveBack = (key: string, requestId: string, isRight: boolean) =>
    returnOnce.run(redis, [key], [requestId, isRight ? 1 : 0])

  /** Now, or when Redis answers again. */
  function giveBackSoon(key: string, requestId: string, isRight: boolean): void {
    const run = () => giveBack(key, requestId, isRight)
    run().catch(() => unanswered.add(requestId, run))
  }

  async function take(key: string, requestId: string, aliveMs: number): Promise<number> {
    try {
      return (await takeOnce.run(redis, [key], [requestId, Math.ceil(aliveMs)])) as number
    } catch (error) {
      // It may still be on its way there.
      unanswered.add(requestId, () => giveBack(key, requestId, false))
      throw new Unavailable('redis', error)
    }
  }

  async function prove(
    asked: Asked,
    key: string,
    requestId: string,
    answer: string,
    ip: string,
  ): Promise<boolean> {
    try {
      const isRight = await inTurn(
        { app: asked.app, caller: ip },
        () => kind.prove(asked, answer),
        () => {
          throw new Overloaded('challenge', 'too many answers are asked about')
        },
      )
      // A wrong one stays wrong: it is not worth remembering.
      if (!isRight) giveBackSoon(key, requestId, false)
      return isRight
    } catch (error) {
      giveBackSoon(key, requestId, false)
      metrics.challenges.inc({ result: 'unavailable' })
      throw error
    }
  }

  return {
    /** A challenge of the caller's own; `ip` is its address. */
    offer(asked: Asked, ip: string): Promise<Offer> {
      metrics.challenges.inc({ result: 'offered' })
      return kind.offer(asked, pressure.raise(asked.app, ip))
    },

    /** `ip` is the caller's address. Throws Unavailable when it can't be said whether the answer is right and new; it is not used up then. */
    async take(asked: Asked, answer: string, ip: string): Promise<Taken> {
      const reading = kind.read(asked, answer)
      if (reading.kind !== 'right' && reading.kind !== 'unproven') {
        metrics.challenges.inc({ result: reading.kind })
        return reading.kind === 'malformed' ? { kind: 'malformed' } : { kind: 'refused' }
      }
      const key = `${keyPrefix}challenge:${reading.id}`
      const requestId = randomUUID()
      const taken = await take(key, requestId, reading.aliveMs)
      if (taken === 0) {
        metrics.challenges.inc({ result: 'used' })
        return { kind: 'refused' }
      }
      const isProven = reading.kind === 'right' || taken === 2
      if (!isProven && !(await prove(asked, key, requestId, answer, ip))) {
        metrics.challenges.inc({ result: 'wrong' })
        return { kind: 'refused' }
      }
      // One that was given back opens another request, but was solved once.
      if (taken === 1) pressure.solved(asked.app)
      metrics.challenges.inc({ result: 'solved' })
      return {
        kind: 'taken',
        giveBack() {
          metrics.challenges.inc({ result: 'given_back' })
          giveBackSoon(key, requestId, true)
        },
      }
    },

    close(): void {
      unanswered.close()
      kind.close()
    },
  }
}
