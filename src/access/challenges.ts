/**
 * Whether a caller has shown to be human. An answer opens one request: it is taken in Redis before that
 * request asks the limits, and given back when the request came to nothing, so that nobody solves twice for
 * a fault of ours or a limit. An answer whose request died with its process stays taken until its end; the next
 * request of that person is asked for another.
 */
import { randomUUID } from 'node:crypto'
import type { Metrics } from '../base/metrics.ts'
import { Overloaded } from '../base/problems.ts'
import { createOnce } from '../base/redis-once.ts'
import type { RedisClient } from '../base/redis-script.ts'
import { createTurns } from '../base/turns.ts'
import type { Asked, ChallengeKind, Offer } from './challenge-kind.ts'
import { createPressure } from './pressure.ts'

/** Who asks. Only callers from pages are ever asked for a challenge. */
export interface Caller extends Asked {
  isPage: boolean
  /** An address. */
  ip: string
}

/** No answer could be given again after it. */
const maxAgeMs = 600_000
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
  const once = createOnce(redis, maxAgeMs)

  async function prove(
    caller: Caller,
    key: string,
    requestId: string,
    answer: string,
  ): Promise<boolean> {
    try {
      const isRight = await inTurn(
        { app: caller.app, caller: caller.ip },
        () => kind.prove(caller, answer),
        () => {
          throw new Overloaded('challenge', 'too many answers are asked about')
        },
      )
      // A wrong one stays wrong: it is not worth remembering.
      if (!isRight) once.giveBack(key, requestId, false)
      return isRight
    } catch (error) {
      once.giveBack(key, requestId, false)
      metrics.challenges.inc({ result: 'unavailable' })
      throw error
    }
  }

  const wrong = (caller: Caller, result: 'used' | 'wrong' | 'expired') => {
    metrics.challenges.inc({ result })
    return required(caller)
  }

  async function required(caller: Caller, by: { policy?: string; rule?: string } = {}) {
    return { outcome: 'challenge_required', ...by, challenge: await offer(caller) } as const
  }

  /** A challenge of the caller's own. */
  function offer(caller: Caller): Promise<Offer> {
    metrics.challenges.inc({ result: 'offered' })
    return kind.offer(caller, pressure.raise(caller.app, caller.ip))
  }

  return {
    offer,

    /**
     * Lets a request in: `isHuman` past the rules that ask for a challenge. Its answer, if it carries one, is used up until it
     * is given back, now or when Redis answers again. Throws Unavailable when it can't be said whether the answer is right
     * and new; it is not used up then.
     */
    async enter(caller: Caller, answer: string | undefined) {
      if (answer === undefined) return { isHuman: !caller.isPage, giveBack() {} }
      const reading = kind.read(caller, answer)
      if (reading.kind === 'malformed') {
        metrics.challenges.inc({ result: 'malformed' })
        const errors = [{ path: 'challenge', message: 'is no answer to a challenge' }]
        return { outcome: 'invalid_request', errors } as const
      }
      if (reading.kind !== 'right' && reading.kind !== 'unproven')
        return wrong(caller, reading.kind)
      const key = `${keyPrefix}challenge:${reading.id}`
      const requestId = randomUUID()
      const taken = await once.take(key, requestId, reading.aliveMs)
      if (taken === 0) return wrong(caller, 'used')
      const isProven = reading.kind === 'right' || taken === 2
      if (!isProven && !(await prove(caller, key, requestId, answer))) return wrong(caller, 'wrong')
      // One that was given back opens another request, but was solved once.
      if (taken === 1) pressure.solved(caller.app)
      metrics.challenges.inc({ result: 'solved' })
      return {
        isHuman: true,
        giveBack() {
          metrics.challenges.inc({ result: 'given_back' })
          once.giveBack(key, requestId, true)
        },
      }
    },

    /** The refusal, or the challenge that opens its rule. */
    async refuse<Limited extends { policy: string; rule: string; challenge?: true }>(
      caller: Caller,
      limited: Limited,
    ) {
      const { challenge, policy, rule } = limited
      return challenge && caller.isPage ? required(caller, { policy, rule }) : limited
    },

    close(): void {
      once.close()
      kind.close()
    },
  }
}
