/**
 * The limits `pace` and `quotas` of providers, which the limiter keeps for all workers together. Each provider has one
 * policy that is decided in one step. So a message that waits for the pace uses nothing of its recipient's quota.
 */
import { randomUUID } from 'node:crypto'
import { Unavailable } from '../base/problems.ts'
import type { Limiter, RawPolicies, RawRule } from '../limiter/index.ts'
import { createPlaces } from './places.ts'

export interface ProviderLimits {
  /** Calls of the provider by all workers together, e.g. `50 per 1s`. */
  pace?: string | undefined
  /** Limits of the provider per recipient, e.g. `[1 per 60s, 10 per 24h]`. */
  quotas?: readonly string[] | undefined
}

/** One policy for each provider with limits. */
export function providerPolicies(entries: Readonly<Record<string, ProviderLimits>>): RawPolicies {
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

export type SendPermit =
  | { granted: true; release(): Promise<void> }
  | { granted: false; reason: 'pace' | 'quota' | 'limiter'; retryInMs: number }

export type AcquireSendPermit = ReturnType<typeof createSendPermits>

const limiterRetryMs = 1_000
const free: SendPermit = { granted: true, release: async () => {} }

/** `limiter` must know the policies of `providerPolicies`. `hasLimits`: whether this provider has a policy. */
export function createSendPermits(name: string, limiter: Limiter, hasLimits: boolean) {
  const paceWindows = hasLimits ? limiter.windows(name).filter(({ rule }) => rule === 'pace') : []
  const spacingMs = Math.max(
    0,
    ...paceWindows.map(({ windowMs = 0, limit }) => windowMs / Math.max(1, limit)),
  )
  const places = createPlaces()

  return async function acquireSendPermit(to: string, isUrgent: boolean): Promise<SendPermit> {
    if (!hasLimits) return free
    /** The id by which this use can be given back. */
    const requestId = randomUUID()
    const fields = { name, to }
    try {
      const decision = await limiter.acquire(name, fields, { requestId })
      if (decision.admitted) {
        return {
          granted: true,
          release: async () => {
            await limiter.release(name, fields, requestId).catch(() => {})
          },
        }
      }
      const { rule, retryAfterMs } = decision
      if (rule === 'quota') return { granted: false, reason: 'quota', retryInMs: retryAfterMs }
      const retryInMs = places(isUrgent, retryAfterMs, spacingMs)
      return { granted: false, reason: 'pace', retryInMs }
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      return { granted: false, reason: 'limiter', retryInMs: limiterRetryMs }
    }
  }
}
