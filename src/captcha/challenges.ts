/**
 * Reports if a caller has proved to be human. An answer is valid for one request. It is taken in Redis before the limit
 * check, and given back if the request fails. So a limit or a server error never costs the person a solved challenge.
 * If the process dies with the request, the answer stays used until it expires, and the next request needs a new one.
 */
import { randomUUID } from 'node:crypto'
import { createOnce } from '../base/redis-once.ts'
import type { RedisClient } from '../base/redis-script.ts'
import { createTurns } from '../base/turns.ts'
import { Overloaded } from '../base/unavailable.ts'
import type { Caller } from '../rules/caller.ts'
import {
  type ChallengeRequired,
  type InvalidRequest,
  invalidRequest,
  type Limited,
} from '../rules/refused.ts'
import { createAltcha } from './altcha.ts'
import type { ChallengeKind, Offer } from './challenge-kind.ts'
import type { CaptchaMetrics } from './metrics.ts'
import { createPressure } from './pressure.ts'
import { createSiteverify, type SiteverifySettings } from './siteverify.ts'

/** After this time no answer is valid. */
const maxAgeMs = 600_000
/** Strangers can invent tokens, and each costs a call of the vendor. A send must still be answered after the wait. */
const turnsAtVendor = { maxUnderWay: 32, maxWaiting: 64, maxWaitMs: 300 }

/** The kind that the policy file names. `tries`: keys that a caller derives on average. */
export function createChallengeKind(
  settings: { kind: 'altcha'; tries: number } | SiteverifySettings,
  deps: Pick<Parameters<typeof createAltcha>[0], 'secrets' | 'nowMs'>,
): ChallengeKind {
  return settings.kind === 'altcha'
    ? createAltcha({ ...deps, tries: settings.tries })
    : createSiteverify(settings)
}

export type Challenges = ReturnType<typeof createChallenges>

export function createChallenges(deps: {
  kind: ChallengeKind
  redis: RedisClient
  keyPrefix: string
  metrics: Pick<CaptchaMetrics, 'challenges'>
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
          throw new Overloaded('challenge', 'too many challenge answers wait for the vendor')
        },
      )
      // A wrong answer stays wrong, so it is not stored.
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

  async function required(
    caller: Caller,
    by: { policy?: string; rule?: string } = {},
  ): Promise<ChallengeRequired> {
    return { outcome: 'challenge_required', ...by, challenge: await offer(caller) }
  }

  function offer(caller: Caller): Promise<Offer> {
    metrics.challenges.inc({ result: 'offered' })
    return kind.offer(caller, pressure.raise(caller.app, caller.ip))
  }

  return {
    offer,

    /**
     * Admits a request. `isHuman`: rules in mode challenge admit it. The request's answer is used up until it is given
     * back. Throws Unavailable if the answer can't be checked now; then it is not used up.
     */
    async enter(
      caller: Caller,
      answer: string | undefined,
    ): Promise<{ isHuman: boolean; giveBack(): void } | InvalidRequest | ChallengeRequired> {
      if (answer === undefined) return { isHuman: !caller.isPage, giveBack() {} }
      const reading = kind.read(caller, answer)
      if (reading.kind === 'malformed') {
        metrics.challenges.inc({ result: 'malformed' })
        return invalidRequest('challenge', 'noAnswer')
      }
      if (reading.kind !== 'right' && reading.kind !== 'unproven')
        return wrong(caller, reading.kind)
      const key = `${keyPrefix}challenge:${reading.id}`
      const requestId = randomUUID()
      const taken = await once.take(key, requestId, reading.aliveMs)
      if (taken === 0) return wrong(caller, 'used')
      const isProven = reading.kind === 'right' || taken === 2
      if (!isProven && !(await prove(caller, key, requestId, answer))) return wrong(caller, 'wrong')
      // An answer that was given back is valid for another request, but counts as one solution.
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

    /** Returns the refusal, or a challenge if a solved challenge would admit the request. */
    async refuse(caller: Caller, limited: Limited): Promise<Limited | ChallengeRequired> {
      const { challenge, policy, rule } = limited
      return challenge && caller.isPage ? required(caller, { policy, rule }) : limited
    },

    close(): void {
      once.close()
      kind.close()
    },
  }
}
