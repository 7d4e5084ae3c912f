/**
 * The limiter in process: the same cells and the same decisions as over Redis, by an injected clock.
 * Bounded without timers: every rule keeps at most `maxSubjects` subjects (see subject-table.ts). What
 * a subject had used is forgotten when it gives up its place, so `maxSubjects` belongs above the number
 * of subjects that are active within the longest window.
 */
import { acquireWithin } from './acquire-within.ts'
import { beginLock, giveBack, type Look, look, take } from './cells.ts'
import type { AcquireOptions, Decision, Limiter, LimiterHooks } from './limiter.ts'
import { type CompiledPolicy, compilePolicies, type Fields } from './plan.ts'
import type { RawPolicies } from './policies.ts'
import {
  admissionOf,
  checkedPolicies,
  createLook,
  examine,
  policyOf,
  refusalOf,
} from './policy-set.ts'
import { createRequestMemory } from './request-memory.ts'
import { createSubjectTable, type SubjectTable } from './subject-table.ts'

export interface LocalLimiterOptions extends LimiterHooks {
  readonly policies: RawPolicies
  /** Per rule. Default 100,000. */
  readonly maxSubjects?: number
  /** Milliseconds; default `Date.now`. */
  readonly clock?: () => number
  /** How long a request id is remembered. Default 5 minutes. */
  readonly rememberRequestsMs?: number
}

export interface LocalLimiter extends Limiter {
  /** `acquire` without a promise. */
  tryAcquire(policy: string, fields: Fields, options?: AcquireOptions): Decision
}

interface LocalPolicy extends CompiledPolicy {
  /** By part. */
  readonly tables: readonly SubjectTable[]
  /** By part, filled anew by every acquire. */
  readonly looks: readonly Look[]
  readonly places: number[]
}

export function createLocalLimiter(options: LocalLimiterOptions): LocalLimiter {
  const { onRefused, onObserved } = options
  const maxSubjects = options.maxSubjects ?? 100_000
  const clock = options.clock ?? Date.now
  const requests = createRequestMemory(options.rememberRequestsMs ?? 300_000, maxSubjects)
  /** Filled anew by every acquire: what is left by window, and the observed rules that are full. */
  const left: number[] = []
  const full: number[] = []
  let policies = new Map<string, LocalPolicy>()
  setPolicies(options.policies)

  function setPolicies(raw: RawPolicies): void {
    const compiled = compilePolicies(checkedPolicies(raw))
    policies = new Map([...compiled].map(([name, policy]) => [name, prepare(policy)]))
  }

  /** Tables live on under the names of policy, rule and part. */
  function prepare(policy: CompiledPolicy): LocalPolicy {
    const former = policies.get(policy.name)
    const tables = policy.parts.map((part) => {
      const index = former?.parts.findIndex(
        (one) => one.rule.name === part.rule.name && one.suffix === part.suffix,
      )
      const table = index === undefined ? undefined : former?.tables[index]
      return table ? table.reshaped(part, clock()) : createSubjectTable(part, maxSubjects)
    })
    return { ...policy, tables, looks: policy.parts.map(createLook), places: [] }
  }

  function tryAcquire(
    policyName: string,
    fields: Fields,
    acquireOptions?: AcquireOptions,
  ): Decision {
    const permits = acquireOptions?.permits ?? 1
    const requestId = acquireOptions?.requestId
    const policy = policyOf(policies, policyName, permits)
    const { parts, tables, looks, places } = policy
    const subjects = policy.subjectsOf(fields)
    const nowMs = clock()
    const isSeen = requestId !== undefined && requests.has(policyName, requestId, subjects, nowMs)
    let held: Look | undefined
    full.length = 0
    let nextInMs = 0
    for (let index = 0; index < parts.length; index++) {
      const part = parts[index] as (typeof parts)[number]
      const found = looks[index] as Look
      const table = tables[index] as SubjectTable
      const place = table.find(subjects[part.ruleIndex] as string)
      places[index] = place
      const asked = permits * part.rule.permits
      look(table.cells, place, part, nowMs, isSeen ? 0 : asked, asked, left, found)
      if (found.nextMs > nextInMs && part.rule.mode === 'enforce') nextInMs = found.nextMs
    }
    if (isSeen) return admissionOf(policy, left, nextInMs)
    for (let index = 0; index < parts.length; index++) {
      const part = parts[index] as (typeof parts)[number]
      const found = looks[index] as Look
      if (found.waitMs === 0) continue
      if (part.rule.lock) {
        const table = tables[index] as SubjectTable
        const place = table.claim(subjects[part.ruleIndex] as string, nowMs)
        found.waitMs = beginLock(table.cells, place, part, nowMs, found) || found.waitMs
      }
      if (part.rule.mode === 'observe') full.push(part.ruleIndex)
      else if (!held || found.waitMs > held.waitMs) held = found
    }
    if (held) {
      const refusal = refusalOf(policy, held.window, held.waitMs)
      onRefused?.({ policy: policyName, rule: refusal.rule })
      return refusal
    }
    const stamps: number[] | undefined = requestId === undefined ? undefined : []
    for (let index = 0; index < parts.length; index++) {
      const part = parts[index] as (typeof parts)[number]
      const found = looks[index] as Look
      if (found.waitMs > 0 || (full.length > 0 && full.includes(part.ruleIndex))) {
        stamps?.push(0)
        continue
      }
      const table = tables[index] as SubjectTable
      const place =
        table.touch(places[index] as number) ||
        table.claim(subjects[part.ruleIndex] as string, nowMs)
      const at = take(table.cells, place, part, nowMs, permits * part.rule.permits, found)
      stamps?.push(at)
    }
    if (stamps) requests.remember(policyName, requestId as string, subjects, nowMs, permits, stamps)
    return admissionOf(policy, left, nextInMs, onObserved)
  }

  const acquire: Limiter['acquire'] = async (policy, fields, acquireOptions) =>
    tryAcquire(policy, fields, acquireOptions)

  return {
    tryAcquire,
    acquire,
    acquireWithin: (policy, fields, timeoutMs, acquireOptions) =>
      acquireWithin(() => acquire(policy, fields, acquireOptions), timeoutMs),

    async release(policyName, fields, requestId, ruleNames) {
      const policy = policyOf(policies, policyName)
      if (policy.parts.length === 0) return false
      const subjects = policy.subjectsOf(fields)
      const request = requests.take(policyName, requestId, subjects, clock())
      if (!request) return false
      for (const [index, part] of policy.parts.entries()) {
        if (ruleNames && !ruleNames.includes(part.rule.name)) continue
        const { cells, find } = policy.tables[index] as SubjectTable
        const place = find(subjects[part.ruleIndex] as string)
        const permits = request.permits * part.rule.permits
        giveBack(cells, place, part, request.stamps[index] ?? 0, permits)
      }
      return true
    },

    async peek(policyName, fields) {
      const policy = policyOf(policies, policyName)
      const subjects = policy.subjectsOf(fields)
      const nowMs = clock()
      return policy.parts.flatMap((part, index) => {
        const { cells, find } = policy.tables[index] as SubjectTable
        const place = find(subjects[part.ruleIndex] as string)
        return examine(part, cells, place, nowMs, 1).states
      })
    },

    async reset(policyName, fields, ruleName) {
      const policy = policyOf(policies, policyName)
      const subjects = policy.subjectsOf(fields)
      for (const [index, part] of policy.parts.entries()) {
        if (ruleName !== undefined && part.rule.name !== ruleName) continue
        const subject = subjects[part.ruleIndex] as string
        policy.tables[index]?.forget(subject)
        requests.forgetPart(policyName, index, part.ruleIndex, subject)
      }
    },

    setPolicies,
    windows: (policyName) => policyOf(policies, policyName).windowLimits,
    close: () => undefined,
  }
}
