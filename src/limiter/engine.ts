/** The limiter over a store. It makes a check from each call, and a decision from the store's answer. */
import { setTimeout } from 'node:timers/promises'
import { canonical } from '../base/canonical.ts'
import { admissionOf, limitOf, refusalOf, statesOf } from './decisions.ts'
import { InvalidOption, LimiterUnavailable, UnknownPolicy, UnknownRule } from './errors.ts'
import type { AcquireOptions, Decision, Limiter, LimiterEvents } from './limiter.ts'
import { compilePolicies, permitsOf, policyOf, subjectOf } from './policy/compile.ts'
import type { Fields, RawPolicies, Rule } from './policy/rule.ts'
import {
  type Answer,
  type Check,
  type IsMeant,
  type Store,
  type Taken,
  usualMemoryMs,
} from './store.ts'

/** Any order of fields is the same text, and 7 is "7", as in keys of rules. */
function textOf(fields: Fields): string {
  const parts: string[] = []
  for (const name of Object.keys(fields).sort()) {
    if (fields[name] !== undefined) parts.push(name, String(fields[name]))
  }
  return canonical(parts)
}

/** Node fires a timer with a longer time at once. */
const maxTimerMs = 2 ** 31 - 1

export interface EngineOptions extends LimiterEvents {
  readonly policies: RawPolicies
  /** How long a request id is remembered. Default 5 minutes. */
  readonly rememberRequestsMs?: number | undefined
}

/** `clientId` separates the counts of rules with `scope: per-client`. A limiter in process has none. */
export function createEngine(
  options: EngineOptions & { readonly whenUnavailable?: Limiter | undefined },
  store: Store,
  clientId?: string,
) {
  const { rememberRequestsMs = usualMemoryMs, whenUnavailable } = options
  if (!Number.isSafeInteger(rememberRequestsMs) || rememberRequestsMs < 1) {
    throw new InvalidOption('rememberRequestsMs', 'must be whole milliseconds, 1 or more')
  }
  let policies = compilePolicies(options.policies, clientId)
  let source = JSON.stringify(options.policies)
  /** Policies from before reloads, by their source, and the time when the last requests that they counted are forgotten. */
  const earlier = new Map<string, { policies: typeof policies; endsAt: number }>()
  const closing = new AbortController()

  /**
   * A check that takes nothing. With `rule`, only the fields of that rule's key are needed. Without the field that names
   * the permits, it is for one permit.
   */
  function lookOf(known: typeof policies, name: string, fields: Fields, rule?: string): Check {
    const policy = policyOf(known, name)
    const parts = policy.parts.filter((part) => rule === undefined || part.rule.name === rule)
    if (rule !== undefined && parts.length === 0) throw new UnknownRule(name, rule)
    const asks = parts.map((part) => {
      const { permits } = part.rule
      const wanted = typeof permits === 'number' ? permits : Number(fields?.[permits])
      return { part, subject: subjectOf(name, part, fields), permits: wanted > 0 ? wanted : 1 }
    })
    return {
      policy,
      asks,
      requestId: undefined,
      fields: '',
      isNew: true,
      isSolved: false,
      group: '',
    }
  }

  function checkOf(name: string, fields: Fields, asked: AcquireOptions = {}): Check {
    const { permits: times = 1, requestId, isNewRequest = false, isSolved = false } = asked
    const policy = policyOf(policies, name, times)
    const asks = policy.parts.map((part) => ({
      part,
      subject: subjectOf(name, part, fields),
      permits: permitsOf(name, part, fields, times),
    }))
    const isNew = requestId === undefined || isNewRequest
    // A short group name for most checks. Making the long name would take a tenth of their time.
    const isUsual = times === 1 && !isSolved && !policy.hasPermitsInFields
    const group = isUsual ? policy.id : `${policy.id} ${isSolved} ${asks.map((ask) => ask.permits)}`
    const text = requestId === undefined ? '' : textOf(fields)
    return { policy, asks, requestId, fields: text, isNew, isSolved, group }
  }

  /** Makes the decision that `acquire` returns. Reports it, unless the call is silent. */
  function decide(check: Check, answer: Answer, { isSilent }: AcquireOptions = {}): Decision {
    const policy = check.policy.name
    if (!answer.taken) {
      const refusal = refusalOf(answer)
      if (!isSilent) options.onRefused?.({ policy, rule: refusal.rule })
      return refusal
    }
    if (!isSilent) reportAdmission(policy, answer.taken)
    return admissionOf(answer.taken)
  }

  function reportAdmission(policy: string, taken: readonly Taken[]): void {
    let reported: Rule | undefined
    for (const { ask, isFull } of taken) {
      const { rule } = ask.part
      if (!isFull || rule.mode !== 'observe' || rule === reported) continue
      reported = rule
      options.onObserved?.({ policy, rule: rule.name })
    }
    options.onAdmitted?.({ policy })
  }

  async function acquire(name: string, fields: Fields, asked?: AcquireOptions): Promise<Decision> {
    const check = checkOf(name, fields, asked)
    try {
      return decide(check, await store.acquire(check), asked)
    } catch (error) {
      if (!(error instanceof LimiterUnavailable)) throw error
      options.onUnavailable?.({ policy: name })
      if (!whenUnavailable) throw error
      return whenUnavailable.acquire(name, fields, asked)
    }
  }

  /** Forgets earlier policies as soon as the last requests that they counted are forgotten. */
  function forgetEarlier(): void {
    const now = performance.now()
    for (const [key, { endsAt }] of earlier) if (endsAt <= now) earlier.delete(key)
  }

  /** A request from before a reload was counted by the rules of that time. So their uses are searched too. */
  async function giveBack(name: string, fields: Fields, requestId: string, isMeant: IsMeant) {
    forgetEarlier()
    const errors: unknown[] = []
    const all = [policies, ...[...earlier.values()].map((one) => one.policies)]
    const having = all.filter((known) => known.has(name))
    if (having.length === 0) throw new UnknownPolicy(name)
    let isKnown = false
    for (const known of having) {
      try {
        const check = { ...lookOf(known, name, fields), requestId, fields: textOf(fields) }
        if (await store.release(check, isMeant)) isKnown = true
      } catch (error) {
        errors.push(error)
      }
    }
    if (errors.length > 0 && !isKnown) throw errors[0]
    return isKnown
  }

  const limiter: Limiter = {
    acquire,

    async acquireWithin(policy, fields, timeoutMs, asked) {
      if (!(timeoutMs >= 0))
        throw new InvalidOption('timeoutMs', `must be 0 or more, not ${timeoutMs}`)
      const endsAt = performance.now() + timeoutMs
      for (;;) {
        const decision = await acquire(policy, fields, asked)
        if (decision.admitted || performance.now() + decision.retryAfterMs > endsAt) return decision
        // Waiting callers have no order. After the longest sleep of a timer, the caller tries again.
        const sleepMs = Math.min(decision.retryAfterMs, maxTimerMs)
        await setTimeout(sleepMs, undefined, { signal: closing.signal }).catch(() => {})
        if (closing.signal.aborted) return decision
      }
    },

    recall(name, fields, asked) {
      const refused = store.recall?.(checkOf(name, fields, asked))
      return refused && refusalOf(refused)
    },

    release: (name, fields, requestId, rules) =>
      giveBack(name, fields, requestId, ({ rule }) => !rules || rules.includes(rule.name)),
    refund: (name, fields, requestId) =>
      giveBack(name, fields, requestId, ({ rule }) => rule.refund === 'passed'),
    peek: async (name, fields, rule) =>
      statesOf(await store.peek(lookOf(policies, name, fields, rule))),
    reset: async (name, fields, rule) => store.reset(lookOf(policies, name, fields, rule)),

    setPolicies(raw) {
      const compiled = compilePolicies(raw, clientId)
      earlier.set(source, { policies, endsAt: performance.now() + rememberRequestsMs })
      policies = compiled
      source = JSON.stringify(raw)
      forgetEarlier()
      store.changeParts([...compiled.values()].flatMap(({ parts }) => parts))
    },
    windows: (name) => policyOf(policies, name).windows.map(limitOf),
    close() {
      closing.abort()
      store.close?.()
    },
  }

  return { limiter, checkOf, decide }
}
