/**
 * The limiter over Redis: decides by Redis' own clock, in one script call, for any number of processes.
 * `check-batch.ts` sends and reads the calls, `ask-slots.ts` knows what a cluster adds.
 */
import { randomUUID } from 'node:crypto'
import { createBatcher } from '../base/batcher.ts'
import { createGenerations, type Generations } from '../base/generations.ts'
import { createUnsettled } from '../base/unsettled.ts'
import { loadScript, type RedisClient } from '../redis/script.ts'
import { createScriptPlans, type ScriptPlan } from './acquire-script.ts'
import { acquireWithin } from './acquire-within.ts'
import { askSlots, type SlotCalls } from './ask-slots.ts'
import { createCellStore } from './cells.ts'
import { type Answer, createCheckBatch, type Obstacle, type Slot } from './check-batch.ts'
import {
  type AcquireOptions,
  type Decision,
  type Limiter,
  type LimiterHooks,
  LimiterUnavailable,
  type Refusal,
} from './limiter.ts'
import { type CompiledPolicy, compilePolicies, type Fields, type Part } from './plan.ts'
import type { RawPolicies } from './policies.ts'
import { admissionOf, checkedPolicies, examine, policyOf, refusalOf } from './policy-set.ts'
import { formOf, readValue, reshapedValue } from './redis-values.ts'
import { createRememberedRefusals, type Remembered } from './remembered-refusals.ts'
import { createSubjectKeys, type SubjectKey } from './subject-keys.ts'
import { withinDeadline } from './within-deadline.ts'

export interface RedisLimiterOptions extends LimiterHooks {
  readonly policies: RawPolicies
  /** An ioredis `Redis` or `Cluster`, best one of its own. */
  readonly redis: RedisClient
  /** Default `postern:`. */
  readonly keyPrefix?: string
  /** Keys the hashes of subjects in Redis keys. Every process must have the same. */
  readonly subjectKey?: SubjectKey
  /** Default 250. */
  readonly deadlineMs?: number
  /** How long a refusal is answered from memory at most, and so how late a reset elsewhere is seen. Default 1,000; 0: never. */
  readonly rememberRefusalsMs?: number
  /** How long a request id is remembered. Default 5 minutes. */
  readonly rememberRequestsMs?: number
  /** Names this process for rules with `scope: per-client`. Default: random. */
  readonly clientId?: string
}

export interface RedisLimiter extends Limiter {
  /**
   * The remembered refusal that holds for these fields, without asking Redis. `acquire` looks here by
   * itself unless the call has a request id, because only its caller knows whether that id is new.
   */
  recall(policy: string, fields: Fields, permits?: number): Refusal | undefined
}

/** A policy with the script that decides it. */
interface ScriptPolicy extends CompiledPolicy {
  readonly plan: ScriptPlan
  /** In a cluster: the plans of some of its parts, by their positions. */
  readonly partialPlans: Map<string, ScriptPlan>
  /** Names of policy, rules and parts: a request is remembered for them together. */
  readonly shape: string
  /** What was refused, by the values of all fields: a shorter way than by subject. */
  readonly refused: Generations<Remembered>
}

const maxRememberedRefusals = 20_000
const maxUnsettledRequests = 10_000
/** A calendar period that turns, or a value of another form, costs another round trip; more than a few are a fault. */
const maxRounds = 5
const dayMs = 86_400_000
/** No value has it. */
const noForm = -1

export function createRedisLimiter(options: RedisLimiterOptions): RedisLimiter {
  const { redis, onRefused, onObserved } = options
  const deadlineMs = options.deadlineMs ?? 250
  const rememberRequestsMs = options.rememberRequestsMs ?? 300_000
  const clientId = options.clientId ?? randomUUID()
  const keysOf = createSubjectKeys(options.keyPrefix ?? 'postern:', options.subjectKey)
  const planOf = createScriptPlans()
  const batch = createCheckBatch({ redis, deadlineMs, rememberRequestsMs })
  const releaseScript = loadScript('release-N')
  const peekScript = loadScript('peek-N')
  const resetScript = loadScript('reset-N')
  const replaceScript = loadScript('replace-1')
  /** In a cluster the values of different subjects may not lie together. */
  const resetValues = createBatcher<readonly string[], void>({
    ...(redis.isCluster ? { maxItems: 1, maxConcurrent: 256 } : { maxItems: 64, maxConcurrent: 4 }),
    async run(subjects) {
      const keys = subjects.flat()
      const call = resetScript.run(redis, [...keys, ...keys.map(resetKey)], [rememberRequestsMs])
      await withinDeadline(call, deadlineMs)
      return subjects.map(() => undefined)
    },
  })
  const unsettled = createUnsettled({
    maxAgeMs: rememberRequestsMs,
    maxEntries: maxUnsettledRequests,
  })
  const refusals = createRememberedRefusals({
    maxAgeMs: options.rememberRefusalsMs ?? 1_000,
    maxSubjects: maxRememberedRefusals,
    now: () => performance.now(),
  })
  let policies = compile(options.policies)

  function compile(raw: RawPolicies): Map<string, ScriptPolicy> {
    const compiled = compilePolicies(checkedPolicies(raw), clientId)
    return new Map([...compiled].map(([name, policy]) => [name, prepare(policy)]))
  }

  function prepare(policy: CompiledPolicy): ScriptPolicy {
    const parts = policy.parts.map(({ rule, suffix }) => rule.name + suffix)
    return {
      ...policy,
      plan: planOf(policy.parts),
      partialPlans: new Map(),
      shape: JSON.stringify([policy.name, parts]),
      refused: createGenerations(maxRememberedRefusals),
    }
  }

  /** Where a check's values are: one slot on a server, one or more in a cluster, widest windows first. */
  function slotsOf(
    policy: ScriptPolicy,
    subjects: readonly string[],
    requestId: string | undefined,
  ): Slot[] {
    const ruleKeys = subjects.map(keysOf.valueKey)
    const keys = policy.parts.map((part) => (ruleKeys[part.ruleIndex] as string) + part.suffix)
    const slot = (plan: ScriptPlan, slotKeys: string[]): Slot => {
      if (!redis.isCluster && requestId === undefined)
        return { plan, tag: '', keys: slotKeys, requestKey: undefined }
      const tag = keysOf.tagOf(slotKeys[0] as string)
      const request = requestId !== undefined && [policy.shape, requestId, ...subjects]
      const requestKey = request ? keysOf.requestKey(tag, request) : undefined
      return { plan, tag: redis.isCluster ? tag : '', keys: slotKeys, requestKey }
    }
    if (!redis.isCluster) return [slot(policy.plan, keys)]
    const byTag = Map.groupBy(keys.keys(), (index) => keysOf.tagOf(keys[index] as string))
    return [...byTag.values()]
      .map((indexes) =>
        slot(
          partialPlan(policy, indexes),
          indexes.map((index) => keys[index] as string),
        ),
      )
      .sort((a, b) => width(b) - width(a))
  }

  function partialPlan(policy: ScriptPolicy, indexes: readonly number[]): ScriptPlan {
    const name = indexes.join()
    let plan = policy.partialPlans.get(name)
    if (!plan) {
      plan = planOf(indexes.map((index) => policy.parts[index] as Part))
      policy.partialPlans.set(name, plan)
    }
    return plan
  }

  const calls: SlotCalls = {
    async acquire(slot, permits, giveUp) {
      const answer = await batch.ask(slot, permits, giveUp)
      return 'admitted' in answer ? answer : overcome(answer, slot, permits, giveUp)
    },

    async lookForWait(slot, permits) {
      const waits = (await peekSlot(slot, permits)).filter(
        ({ part }) => part.rule.mode === 'enforce',
      )
      return waits.reduce((a, b) => (b.waitMs > a.waitMs ? b : a), { waitMs: 0, window: 0 })
    },

    async release(slot, ruleNames) {
      const keys = [...slot.keys, ...slot.keys.map(resetKey), slot.requestKey as string]
      const args = slot.plan.parts.flatMap((part) => {
        const { code, head, size } = formOf(part)
        return [!ruleNames || ruleNames.includes(part.rule.name) ? code : noForm, head, size]
      })
      return (await withinDeadline(releaseScript.run(redis, keys, args), deadlineMs)) === 1
    },

    giveUp: (slot, ruleNames) =>
      unsettled.add(slot.requestKey as string, () => calls.release(slot, ruleNames)),
  }

  /** Does what Redis needs before it can decide, and asks again. */
  async function overcome(
    obstacle: Obstacle,
    slot: Slot,
    permits: number,
    giveUp: (() => void) | undefined,
  ): Promise<Answer> {
    let answer: Answer | Obstacle = obstacle
    for (let round = 1; round < maxRounds; round++) {
      if ('reshape' in answer) await reshape(answer.reshape, answer.key)
      else for (const { calendar } of slot.plan.parts) calendar?.periodAt(answer.now)
      answer = await batch.ask(slot, permits, giveUp)
      if ('admitted' in answer) return answer
    }
    throw new LimiterUnavailable('Redis and the policy do not agree on a period or a form')
  }

  /** Values, and Redis' time; a key of another type counts as empty. */
  async function readKeys(keys: readonly string[]) {
    const reply = await withinDeadline(peekScript.runForBytes(redis, keys, []), deadlineMs)
    const [seconds, microseconds, values] = reply as [Buffer, Buffer, (Buffer | null)[]]
    const nowMs = Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000)
    return { nowMs, values }
  }

  async function reshape(part: Part, key: string): Promise<void> {
    const { nowMs, values } = await readKeys([key])
    const value = values[0] ?? Buffer.alloc(0)
    const args = [value, reshapedValue(value, part, nowMs), part.longestMs || dayMs]
    await withinDeadline(replaceScript.run(redis, [key], args), deadlineMs)
  }

  async function peekSlot(slot: Slot, permits: number) {
    const { nowMs, values } = await readKeys(slot.keys)
    return slot.plan.parts.map((part, index) => {
      const store = createCellStore(part, 1)
      readValue(values[index] ?? null, part, nowMs, store)
      return { part, ...examine(part, store, 0, nowMs, permits) }
    })
  }

  /** A refusal from memory, by the values of the fields, or else by subject. */
  function recallFor(
    policy: ScriptPolicy,
    fields: Fields,
    permits: number,
  ): { refusal: Refusal } | { refusal?: never; subjects: string[] } {
    const values = policy.valuesOf(fields)
    const known = values === undefined ? undefined : policy.refused.get(values)
    const repeated = known && refusals.repeat(known, permits)
    if (repeated) return { refusal: repeated }
    const subjects = policy.subjectsOf(fields)
    const found = refusals.find(subjects, permits)
    const refusal = found && refusals.repeat(found, permits)
    if (!refusal) return { subjects }
    policy.refused.set(values as string, found)
    return { refusal }
  }

  async function acquire(
    policyName: string,
    fields: Fields,
    { permits = 1, requestId }: AcquireOptions = {},
  ): Promise<Decision> {
    const policy = policyOf(policies, policyName, permits)
    const recalled =
      requestId === undefined
        ? recallFor(policy, fields, permits)
        : { subjects: policy.subjectsOf(fields) }
    if (recalled.refusal) {
      onRefused?.({ policy: policyName, rule: recalled.refusal.rule })
      return recalled.refusal
    }
    const { subjects } = recalled
    if (policy.parts.length === 0) return { admitted: true, remaining: [], nextInMs: 0 }
    let slots = slotsOf(policy, subjects, requestId)
    // Several slots give back by the id of the request, so then it must have one.
    if (slots.length > 1 && requestId === undefined) {
      slots = slotsOf(policy, subjects, randomUUID())
    }
    for (const { requestKey } of slots) if (requestKey !== undefined) unsettled.remove(requestKey)
    const [slot] = slots as [Slot]
    const giveUp = slot.requestKey === undefined ? undefined : () => calls.giveUp(slot)
    let answer: Answer | Obstacle =
      slots.length > 1
        ? await askSlots(calls, slots, permits)
        : await batch.ask(slot, permits, giveUp)
    if (!('admitted' in answer)) answer = await overcome(answer, slot, permits, giveUp)
    if (answer.admitted) return admissionOf(policy, answer.left, answer.nextInMs, onObserved)
    const refusal = refusalOf(policy, answer.window, answer.retryAfterMs)
    const rule = policy.windows[answer.window]?.rule as Part['rule']
    const subject = subjects[policy.rules.indexOf(rule)] as string
    if (policies.get(policyName) === policy) {
      refusals.remember(subject, permits, refusal, answer.sentAt)
    }
    onRefused?.({ policy: policyName, rule: rule.name })
    return refusal
  }

  /** What changes the counts of subjects, and ends the memory of their refusals before and after. */
  async function change<T>(subjects: readonly string[], run: () => Promise<T>): Promise<T> {
    refusals.forget(subjects)
    try {
      return await run()
    } finally {
      refusals.forget(subjects)
    }
  }

  return {
    acquire,
    acquireWithin: (policy, fields, timeoutMs, acquireOptions) =>
      acquireWithin(() => acquire(policy, fields, acquireOptions), timeoutMs),

    async release(policyName, fields, requestId, ruleNames) {
      const policy = policyOf(policies, policyName)
      if (policy.parts.length === 0) return false
      const subjects = policy.subjectsOf(fields)
      const slots = slotsOf(policy, subjects, requestId)
      const releaseSlot = async (slot: Slot) => {
        try {
          return await calls.release(slot, ruleNames)
        } catch (error) {
          calls.giveUp(slot, ruleNames)
          throw error
        }
      }
      const released = await change(subjects, () => Promise.all(slots.map(releaseSlot)))
      return released.includes(true)
    },

    async peek(policyName, fields) {
      const policy = policyOf(policies, policyName)
      if (policy.parts.length === 0) return []
      const slots = slotsOf(policy, policy.subjectsOf(fields), undefined)
      const looks = await Promise.all(slots.map((slot) => peekSlot(slot, 1)))
      return looks
        .flat()
        .sort((a, b) => a.part.firstWindow - b.part.firstWindow)
        .flatMap(({ states }) => states)
    },

    async reset(policyName, fields, ruleName) {
      const policy = policyOf(policies, policyName)
      const subjects = policy.subjectsOf(fields)
      const resetSlot = async ({ plan, keys }: Slot) => {
        const own = keys.filter(
          (_, part) => ruleName === undefined || plan.parts[part]?.rule.name === ruleName,
        )
        if (own.length > 0) await resetValues(own)
      }
      const slots = slotsOf(policy, subjects, undefined)
      await change(subjects, () => Promise.all(slots.map(resetSlot)))
    },

    setPolicies(raw) {
      policies = compile(raw)
      refusals.forgetAll()
    },

    recall(policyName, fields, permits = 1) {
      if (refusals.isEmpty()) return undefined
      const { refusal } = recallFor(policyOf(policies, policyName, permits), fields, permits)
      if (refusal) onRefused?.({ policy: policyName, rule: refusal.rule })
      return refusal
    },

    windows: (policyName) => policyOf(policies, policyName).windowLimits,
    close: () => unsettled.close(),
  }
}

function width({ plan }: Slot): number {
  return Math.max(...plan.parts.map((part) => part.longestMs))
}

/** Beside a value: when it was last reset. */
const resetKey = (key: string) => `${key}:reset`
