/**
 * The limits `pace` and `quotas` of providers, which the limiter keeps for all workers together. Each provider has one
 * policy that is decided in one step. So a message that waits for the pace uses nothing of its recipient's quota.
 *
 * Permits go to the message that calls first, and new bulk messages call all the time. So a code that must wait for the
 * pace sets a key in Redis until its return. Meanwhile no worker acquires a permit for a bulk message (lines.ts).
 */
import { randomUUID } from 'node:crypto'
import type { RedisClient } from '../base/redis-script.ts'
import { reachRedis, Unavailable } from '../base/unavailable.ts'
import type { Limiter, parsePolicies, RawPolicies, RawRule } from '../limiter/index.ts'
import { createReturnTimes, longestLimitRetryMs } from './lines.ts'

export interface ProviderLimits {
  /** Calls of the provider by all workers together, e.g. `50 per 1s`. */
  pace?: string | undefined
  /** Limits of the provider per recipient, e.g. `[1 per 60s, 10 per 24h]`. */
  quotas?: readonly string[] | undefined
}

type Entries = Readonly<Record<string, ProviderLimits>>

/** One policy for each provider with limits. */
export function providerPolicies(entries: Entries): RawPolicies {
  const policies: Record<string, RawRule[]> = {}
  for (const [name, { pace, quotas }] of Object.entries(entries)) {
    const rules = [
      ...(pace ? [{ name: 'pace', key: '{name}', sliding: pace, permits: 'calls' }] : []),
      ...(quotas ? [{ name: 'quota', key: '{to}', sliding: [...quotas] }] : []),
    ]
    if (rules.length > 0) policies[name] = rules
  }
  return policies
}

/** The problems of a provider's limits, each with the setting that it is in. */
export function limitProblems(name: string, limits: ProviderLimits, parse: typeof parsePolicies) {
  const read = parse(providerPolicies({ [name]: limits }))
  return (read.ok ? [] : read.problems).map(({ path, message }) => ({
    path: [limits.pace !== undefined && path[1] === 0 ? 'pace' : 'quotas'],
    message,
  }))
}

export type SendPermit =
  /** `release` gives the use back; with `quota`, only for the recipient, and the call still counts for the pace. */
  | { granted: true; release(only?: 'quota'): Promise<void> }
  | { granted: false; reason: 'pace' | 'quota' | 'limiter'; retryInMs: number }

export type AcquireSendPermit = ReturnType<typeof createSendPermits>['acquireSendPermit']

const limiterRetryMs = 1_000
/** A code that waits for the pace may come back this much later than its return time. */
const lateDurationMs = 500
const free: SendPermit = { granted: true, release: async () => {} }

interface Deps {
  /** Gets its policies here. */
  limiter: Limiter
  redis: RedisClient
  keyPrefix: string
}

/** The permits of all providers. */
export function createSendPermits(deps: Deps, entries: Entries) {
  const { limiter } = deps
  /** One line for each provider with limits. */
  const lines = new Map<string, ReturnType<typeof createPaceLine>>()

  function setLimits(entries: Entries): void {
    const policies = providerPolicies(entries)
    limiter.setPolicies(policies)
    lines.clear()
    for (const name of Object.keys(policies)) {
      lines.set(name, createPaceLine(deps, name, entries[name]?.pace))
    }
  }
  setLimits(entries)

  /** Acquires a permit for a message to this recipient, which takes `calls` of the pace. */
  async function acquireSendPermit(
    provider: string,
    to: string,
    isUrgent: boolean,
    calls = 1,
  ): Promise<SendPermit> {
    const line = lines.get(provider)
    if (!line) return free
    /** The id by which this use can be given back. */
    const requestId = randomUUID()
    // A message with more calls than the pace ever admits at once takes all of it.
    const fields = { name: provider, to, calls: Math.min(calls, line.mostCalls) }
    try {
      const codesRetryMs = isUrgent ? 0 : await line.codesRetryMs()
      if (codesRetryMs > 0) return await line.turnAway(false, codesRetryMs)
      const decision = await limiter.acquire(provider, fields, { requestId })
      if (decision.admitted) {
        return {
          granted: true,
          release: async (only) => {
            const rules = only && [only]
            await limiter.release(provider, fields, requestId, rules).catch(() => {})
          },
        }
      }
      const { rule, retryAfterMs } = decision
      if (rule === 'quota') return line.awaitQuota(isUrgent, retryAfterMs)
      return await line.turnAway(isUrgent, retryAfterMs)
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      return { granted: false, reason: 'limiter', retryInMs: limiterRetryMs }
    }
  }

  return { acquireSendPermit, setLimits }
}

/** Messages that wait for the pace come back one after the other, as fast as the pace allows. */
function createPaceLine(
  { limiter, redis, keyPrefix }: Deps,
  provider: string,
  pace: string | undefined,
) {
  const windows = limiter.windows(provider).filter(({ rule }) => rule === 'pace')
  const spacings = windows.map(({ windowMs = 0, limit }) => windowMs / Math.max(1, limit))
  const spacingMs = Math.max(0, ...spacings)
  const returnTimes = createReturnTimes()
  // Contains the pace, so that a reload does not keep bulk messages waiting for an earlier pace.
  const codesWaitKey = `${keyPrefix}codes-wait:${provider}:${pace}`
  return {
    /** The most calls that the pace admits at once; 1 for a pace that admits none. */
    mostCalls: Math.max(1, Math.min(...windows.map(({ limit }) => limit))),

    /** Until then, permits are left to waiting codes. At most 0: no code waits. */
    codesRetryMs: async () => (pace ? reachRedis(redis.pttl(codesWaitKey)) : 0),

    async turnAway(isUrgent: boolean, soonestRetryMs: number): Promise<SendPermit> {
      const retryInMs = returnTimes(isUrgent, soonestRetryMs, spacingMs)
      const turnedAway = { granted: false, reason: 'pace', retryInMs } as const
      if (!isUrgent) return turnedAway
      const ttlMs = Math.ceil(retryInMs + lateDurationMs)
      // Another code may come back later, also to another worker, so the time is never made shorter.
      await reachRedis(
        Promise.all([
          redis.set(codesWaitKey, '', 'PX', ttlMs, 'NX'),
          redis.pexpire(codesWaitKey, ttlMs, 'GT'),
        ]),
      )
      return turnedAway
    },

    /** The quotas of a recipient end at different times, so the message takes no place. */
    awaitQuota(isUrgent: boolean, retryAfterMs: number): SendPermit {
      const isLong = retryAfterMs > longestLimitRetryMs
      const retryInMs = isLong ? returnTimes(isUrgent, retryAfterMs, 0) : retryAfterMs
      return { granted: false, reason: 'quota', retryInMs }
    },
  }
}
