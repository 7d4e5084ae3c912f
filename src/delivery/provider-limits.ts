/**
 * The limits `pace` and `quotas` of providers, which the limiter keeps for all workers together. Each provider has one
 * policy that is decided in one step. So a message that waits for the pace uses nothing of its recipient's quota.
 */
import { randomUUID } from 'node:crypto'
import { Unavailable } from '../base/unavailable.ts'
import type { Limiter, RawPolicies, RawRule } from '../limiter/index.ts'
import { createReturnTimes } from './return-times.ts'

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
      ...(pace ? [{ name: 'pace', key: '{name}', sliding: pace }] : []),
      ...(quotas ? [{ name: 'quota', key: '{to}', sliding: [...quotas] }] : []),
    ]
    if (rules.length > 0) policies[name] = rules
  }
  return policies
}

type SendPermit =
  | { granted: true; release(): Promise<void> }
  | { granted: false; reason: 'pace' | 'quota' | 'limiter'; retryInMs: number }

export type AcquireSendPermit = ReturnType<typeof createSendPermits>['acquireSendPermit']

const limiterRetryMs = 1_000
const free: SendPermit = { granted: true, release: async () => {} }

/** The permits of all providers. `limiter` gets its policies here. */
export function createSendPermits(limiter: Limiter, entries: Entries) {
  /** For each provider with limits: gives messages that wait for its pace a time to come back. */
  const lines = new Map<string, ReturnType<typeof createPaceLine>>()

  function setLimits(entries: Entries): void {
    const policies = providerPolicies(entries)
    limiter.setPolicies(policies)
    lines.clear()
    for (const name of Object.keys(policies)) lines.set(name, createPaceLine(limiter, name))
  }
  setLimits(entries)

  /** Acquires a permit for one call of this provider, with a message to this recipient. */
  async function acquireSendPermit(
    provider: string,
    to: string,
    isUrgent: boolean,
  ): Promise<SendPermit> {
    const line = lines.get(provider)
    if (!line) return free
    /** The id by which this use can be given back. */
    const requestId = randomUUID()
    const fields = { name: provider, to }
    try {
      const decision = await limiter.acquire(provider, fields, { requestId })
      if (decision.admitted) {
        return {
          granted: true,
          release: async () => {
            await limiter.release(provider, fields, requestId).catch(() => {})
          },
        }
      }
      const { rule, retryAfterMs } = decision
      if (rule === 'quota') return { granted: false, reason: 'quota', retryInMs: retryAfterMs }
      return { granted: false, reason: 'pace', retryInMs: line(isUrgent, retryAfterMs) }
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      return { granted: false, reason: 'limiter', retryInMs: limiterRetryMs }
    }
  }

  return { acquireSendPermit, setLimits }
}

/** Messages that wait for the pace come back one after the other, as fast as the pace allows. */
function createPaceLine(limiter: Limiter, provider: string) {
  const pace = limiter.windows(provider).filter(({ rule }) => rule === 'pace')
  const spacings = pace.map(({ windowMs = 0, limit }) => windowMs / Math.max(1, limit))
  const returnTimes = createReturnTimes()
  return (isUrgent: boolean, soonestMs: number) =>
    returnTimes(isUrgent, soonestMs, Math.max(0, ...spacings))
}
