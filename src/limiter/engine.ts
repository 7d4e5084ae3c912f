/**
 * The limiter over a store, wherever that is: makes a check of a call, and of the store's answer what the
 * caller is told.
 */
import { setTimeout } from 'node:timers/promises'
import { admissionOf, limitOf, refusalOf, statesOf } from './decisions.ts'
import { InvalidOption, UnknownRule } from './errors.ts'
import type { AcquireOptions, Decision, Limiter, LimiterEvents, Refusal } from './limiter.ts'
import { compilePolicies, permitsOf, policyOf, subjectOf } from './policy/compile.ts'
import type { Fields, RawPolicies, Rule } from './policy/rule.ts'
import type { Answer, Check, IsMeant, Store } from './store.ts'

/** Timers beyond it fire at once. */
const maxTimerMs = 2 ** 31 - 1

/** What every limiter takes. */
export interface EngineOptions extends LimiterEvents {
  readonly policies: RawPolicies
  /** How long a request id is remembered. Default 5 minutes. */
  readonly rememberRequestsMs?: number | undefined
}

export function createEngine(options: EngineOptions, store: Store, clientId?: string) {
  const { rememberRequestsMs = 1 } = options
  if (!Number.isSafeInteger(rememberRequestsMs) || rememberRequestsMs < 1) {
    throw new InvalidOption('rememberRequestsMs', 'must be whole milliseconds, 1 or more')
  }
  let policies = compilePolicies(options.policies, clientId)
  let policiesBefore = policies
  const closing = new AbortController()

  /** Of a call that takes nothing, so that the fields of one rule are enough to ask for that. */
  function checkOf(known: typeof policies, name: string, fields: Fields, rule?: string): Check {
    const policy = policyOf(known, name)
    const parts = policy.parts.filter((part) => rule === undefined || part.rule.name === rule)
    if (rule !== undefined && parts.length === 0) throw new UnknownRule(name, rule)
    const asks = parts.map((part) => {
      const { permits } = part.rule
      const subject = subjectOf(name, part, fields)
      return { part, subject, permits: typeof permits === 'number' ? permits : 1 }
    })
    return { policy, asks, requestId: undefined, isSolved: false, group: '' }
  }

  /** What was taken before new policies came is known by the rules of then. */
  async function giveBack(name: string, fields: Fields, requestId: string, isMeant: IsMeant) {
    const errors: unknown[] = []
    for (const known of new Set([policies, policiesBefore])) {
      try {
        const check = { ...checkOf(known, name, fields), requestId }
        if (await store.release(check, isMeant)) return true
      } catch (error) {
        errors.push(error)
      }
    }
    if (errors.length > 0) throw errors[0]
    return false
  }

  function acquireCheckOf(name: string, fields: Fields, asked: AcquireOptions = {}): Check {
    const { permits: times = 1, requestId, isSolved = false } = asked
    const policy = policyOf(policies, name, times)
    const asks = policy.parts.map((part) => ({
      part,
      subject: subjectOf(name, part, fields),
      permits: permitsOf(name, part, fields, times),
    }))
    // Most checks ask for no more than that, and a text for each of them would be a tenth of their time.
    const isUsual = times === 1 && !isSolved && !policy.hasPermitsInFields
    const group = isUsual ? policy.id : `${policy.id} ${isSolved} ${asks.map((ask) => ask.permits)}`
    return { policy, asks, requestId, isSolved, group }
  }

  function decide(check: Check, answer: Answer): Decision {
    const policy = check.policy.name
    if (!answer.taken) return refuse(policy, refusalOf(check, answer))
    let told: Rule | undefined
    for (const { ask, isFull } of answer.taken) {
      const { rule } = ask.part
      if (!isFull || rule.mode !== 'observe' || rule === told) continue
      told = rule
      options.onObserved?.({ policy, rule: told.name })
    }
    options.onAdmitted?.({ policy })
    return admissionOf(answer.taken)
  }

  function refuse(policy: string, refusal: Refusal): Refusal {
    options.onRefused?.({ policy, rule: refusal.rule })
    return refusal
  }

  function createLimiter(acquire: Limiter['acquire']): Limiter {
    return {
      acquire,

      async acquireWithin(policy, fields, timeoutMs, asked) {
        if (!(timeoutMs >= 0))
          throw new InvalidOption('timeoutMs', `must be 0 or more, not ${timeoutMs}`)
        const endsAt = performance.now() + timeoutMs
        for (;;) {
          const decision = await acquire(policy, fields, asked)
          if (decision.admitted || performance.now() + decision.retryAfterMs > endsAt)
            return decision
          // Those who wait are not served in order.
          await sleep(decision.retryAfterMs, closing.signal)
          if (closing.signal.aborted) return decision
        }
      },

      release: (name, fields, requestId, rules) =>
        giveBack(name, fields, requestId, ({ rule }) => !rules || rules.includes(rule.name)),
      refund: (name, fields, requestId) =>
        giveBack(name, fields, requestId, ({ rule }) => rule.refund === 'passed'),
      peek: async (name, fields, rule) =>
        statesOf(await store.peek(checkOf(policies, name, fields, rule))),
      reset: async (name, fields, rule) => store.reset(checkOf(policies, name, fields, rule)),

      setPolicies(raw) {
        const compiled = compilePolicies(raw, clientId)
        policiesBefore = policies
        policies = compiled
      },
      windows: (name) => policyOf(policies, name).windows.map(limitOf),
      close: () => closing.abort(),
    }
  }

  return { acquireCheckOf, decide, refuse, createLimiter }
}

/** A clock that callers gave, in whole milliseconds. */
export function wholeClock(clock: () => number): () => number {
  return () => {
    const ms = Math.floor(clock())
    if (ms >= 0 && Number.isSafeInteger(ms)) return ms
    throw new InvalidOption('clock', `must give milliseconds, not ${ms}`)
  }
}

/** Sleeps in steps that a timer can hold; no longer than until the signal. */
async function sleep(sleepMs: number, signal: AbortSignal): Promise<void> {
  for (let leftMs = sleepMs; leftMs > 0 && !signal.aborted; leftMs -= maxTimerMs) {
    await setTimeout(Math.min(leftMs, maxTimerMs), undefined, { signal }).catch(() => {})
  }
}
