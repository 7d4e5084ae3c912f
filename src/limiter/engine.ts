/**
 * The limiter over a store, wherever that is: makes a check of a call, and of the store's answer what the
 * caller is told.
 */
import { admissionOf, refusalOf, statesOf } from './decisions.ts'
import type { AcquireOptions, Decision, Limiter, LimiterEvents } from './limiter.ts'
import { compilePolicies, type Part, policyOf } from './policy/compile.ts'
import { checkedPolicies } from './policy/parse.ts'
import type { Fields, RawPolicies } from './policy/rule.ts'
import type { Answer, Check, Store } from './store.ts'

/** Timers beyond it fire at once. */
const maxTimerMs = 2 ** 31 - 1

export function createEngine(
  options: LimiterEvents & { readonly policies: RawPolicies },
  store: Store,
  clientId?: string,
) {
  const compile = (raw: RawPolicies) => compilePolicies(checkedPolicies(raw), clientId)
  let policies = compile(options.policies)

  function checkOf(name: string, fields: Fields, asked: AcquireOptions = {}): Check {
    const { permits = 1, requestId, isSolved = false } = asked
    const policy = policyOf(policies, name, permits)
    const subjects = policy.subjectsOf(fields)
    const permitsOf = policy.permitsOf(fields, permits)
    return { policy, parts: policy.parts, subjects, permits: permitsOf, requestId, isSolved }
  }

  function decide({ policy }: Check, answer: Answer): Decision {
    if (answer.taken) return admissionOf(policy, answer.taken, options)
    const refusal = refusalOf(policy, answer.hold, answer.isNewLock)
    options.onRefused?.({ policy: policy.name, rule: refusal.rule })
    return refusal
  }

  function createLimiter(acquire: Limiter['acquire']): Limiter {
    return {
      acquire,

      async acquireWithin(policy, fields, timeoutMs, asked) {
        const endsAt = performance.now() + timeoutMs
        for (;;) {
          const decision = await acquire(policy, fields, asked)
          if (decision.admitted || performance.now() + decision.retryAfterMs > endsAt)
            return decision
          // Those who wait are not served in order.
          await sleep(decision.retryAfterMs)
        }
      },

      release: async (name, fields, requestId, rules) =>
        store.release(
          checkOf(name, fields, { requestId }),
          ({ rule }) => !rules || rules.includes(rule.name),
        ),
      refund: async (name, fields, requestId) =>
        store.release(checkOf(name, fields, { requestId }), ({ rule }) => rule.refund === 'passed'),

      async peek(name, fields) {
        const found = await store.peek(checkOf(name, fields))
        return found.flatMap(({ part, uses, now }) => statesOf(part, uses, now))
      },

      async reset(name, fields, ruleName) {
        const check = checkOf(name, fields)
        const isMeant = ({ rule }: Part) => ruleName === undefined || rule.name === ruleName
        await store.reset({ ...check, parts: check.parts.filter(isMeant) })
      },

      setPolicies(raw) {
        policies = compile(raw)
      },

      windows: (name) => policyOf(policies, name).windowLimits,
      close() {},
    }
  }

  return {
    checkOf,
    decide,
    createLimiter,
    isCurrent: ({ policy }: Check) => policies.get(policy.name) === policy,
  }
}

/** Sleeps in steps that a timer can hold. */
async function sleep(sleepMs: number): Promise<void> {
  for (let leftMs = sleepMs; leftMs > 0; leftMs -= maxTimerMs) {
    await new Promise((wake) => setTimeout(wake, Math.min(leftMs, maxTimerMs)))
  }
}
