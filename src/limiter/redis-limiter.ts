/**
 * The limiter over Redis: decides by Redis' own clock, in one script call, for any number of processes.
 *
 * On one server all rules of a check are one atomic step. In a cluster the rules of a check may live in
 * different slots: then they are asked one slot after the other, widest window first, and a refusal
 * gives back what the earlier ones took. That is all or nothing in the end, but for a moment another
 * check may see what is about to be given back.
 */
import { randomUUID } from 'node:crypto'
import { loadScript, type RedisClient } from '../redis/script.ts'
import { acquireWithin } from './acquire-within.ts'
import type { CellStore } from './cells.ts'
import {
  type AcquireOptions,
  type Decision,
  type Limiter,
  type LimiterHooks,
  LimiterUnavailable,
  type Refusal,
} from './limiter.ts'
import { type CompiledPolicy, compilePolicies, type Fields, type Part, scriptPlan } from './plan.ts'
import type { RawPolicies } from './policies.ts'
import {
  admissionOf,
  checkedPolicies,
  examine,
  policyOf,
  refusalOf,
  windowLimits,
} from './policy-set.ts'
import { readCells } from './redis-cells.ts'
import { createRememberedRefusals } from './remembered-refusals.ts'
import { type Check, createScriptBatch, withinDeadline } from './script-batch.ts'
import { createSubjectKeys, type SubjectKey } from './subject-keys.ts'
import { createUnsettled } from './unsettled.ts'

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

/** The parts of a check that share a hash tag, and their keys. */
interface Slot {
  readonly tag: string
  readonly parts: readonly Part[]
  readonly keys: readonly string[]
  readonly requestKey: string | undefined
}

type Answer =
  | { readonly admitted: true; readonly left: readonly number[]; readonly nextInMs: number }
  | { readonly admitted: false; readonly window: number; readonly retryAfterMs: number }

const maxRememberedRefusals = 20_000
const maxUnsettledRequests = 10_000
/** A calendar period that turns, or a value of another form, costs another round trip; more than a few are a fault. */
const maxRounds = 5

export function createRedisLimiter(options: RedisLimiterOptions): RedisLimiter {
  const { redis, onRefused, onObserved } = options
  const deadlineMs = options.deadlineMs ?? 250
  const rememberRequestsMs = options.rememberRequestsMs ?? 300_000
  const clientId = options.clientId ?? randomUUID()
  const isCluster = redis.isCluster
  const keysOf = createSubjectKeys(options.keyPrefix ?? 'postern:', options.subjectKey)
  const batch = createScriptBatch({ redis, script: loadScript('acquire-N'), deadlineMs })
  const releaseScript = loadScript('release-N')
  const peekScript = loadScript('peek-N')
  const resetScript = loadScript('reset-N')
  const reshapeScript = loadScript('reshape-1')
  const unsettled = createUnsettled({
    maxAgeMs: rememberRequestsMs,
    maxRequests: maxUnsettledRequests,
  })
  const refusals = createRememberedRefusals({
    maxAgeMs: options.rememberRefusalsMs ?? 1_000,
    maxSubjects: maxRememberedRefusals,
    now: () => performance.now(),
  })
  /** Goes up with everything that may end a refusal early: what was asked before is not remembered after. */
  let epoch = 0
  let policies = compile(options.policies)

  function compile(raw: RawPolicies): Map<string, ScriptPolicy> {
    const compiled = compilePolicies(checkedPolicies(raw), clientId)
    return new Map([...compiled].map(([name, policy]) => [name, prepare(policy)]))
  }

  /** A policy with what its keys and its script arguments need. */
  function prepare(policy: CompiledPolicy) {
    const ruleIds = policy.rules.map((rule) => keysOf.ruleId(policy.name, rule.name))
    const shape = JSON.stringify([
      policy.name,
      policy.parts.map(({ rule, suffix }) => rule.name + suffix),
    ])
    let plan = ''
    let plannedPeriods = ''
    const calendars = policy.parts.flatMap((part) => part.calendar ?? [])
    return {
      ...policy,
      ruleIds,
      shape,
      /** The arguments for all parts, made anew only when a calendar period has turned. */
      plan(): string {
        const periods = calendars.map((calendar) => calendar.latest().endsAt).join()
        if (plan === '' || periods !== plannedPeriods) {
          plan = scriptPlan(policy.parts)
          plannedPeriods = periods
        }
        return plan
      },
    }
  }
  type ScriptPolicy = ReturnType<typeof prepare>

  /** Where a check's values are: one slot on a server, one or more in a cluster, lockouts and wide windows first. */
  function slotsOf(
    policy: ScriptPolicy,
    subjects: readonly string[],
    requestId: string | undefined,
  ): Slot[] {
    const ruleKeys = subjects.map((subject, index) =>
      keysOf.valueKey(policy.ruleIds[index] as string, subject),
    )
    const keys = policy.parts.map((part) => (ruleKeys[part.ruleIndex] as string) + part.suffix)
    const slot = (parts: readonly Part[], slotKeys: readonly string[]): Slot => {
      const tag = keysOf.tagOf(slotKeys[0] as string)
      const requestKey =
        requestId === undefined
          ? undefined
          : keysOf.requestKey(tag, [policy.shape, requestId, ...subjects])
      return { tag, parts, keys: slotKeys, requestKey }
    }
    if (!isCluster) return [slot(policy.parts, keys)]
    const byTag = new Map<string, number[]>()
    for (const [index, key] of keys.entries()) {
      const tag = keysOf.tagOf(key)
      byTag.set(tag, [...(byTag.get(tag) ?? []), index])
    }
    return [...byTag.values()]
      .map((indexes) =>
        slot(
          indexes.map((index) => policy.parts[index] as Part),
          indexes.map((index) => keys[index] as string),
        ),
      )
      .sort((a, b) => width(b) - width(a))
  }

  function askSlot(
    policy: ScriptPolicy,
    slot: Slot,
    permits: number,
    giveUp: (() => void) | undefined,
  ): Promise<Answer & { sentAt: number }> {
    return new Promise((resolve, reject) => {
      let rounds = 0
      let isFailed = false
      const keys = slot.requestKey === undefined ? slot.keys : [...slot.keys, slot.requestKey]
      const check: Check = {
        keys,
        answer(reply, at, sentAt) {
          const code = reply[at] as number
          if (code === 0) {
            const windows = slot.parts.reduce((sum, part) => sum + part.windows.length, 0)
            const left = reply.slice(at + 2, at + 2 + windows)
            const nextInMs = reply[at + 1] as number
            if (isFailed) giveUp?.()
            else resolve({ admitted: true, left, nextInMs, sentAt })
            return at + 2 + windows
          }
          const detail = reply[at + 1] as number
          if (isFailed) return at + 2
          if (code > 0) resolve({ admitted: false, window: detail, retryAfterMs: code, sentAt })
          else if (code === -1) {
            for (const part of slot.parts) part.calendar?.periodAt(detail)
            askAgain()
          } else {
            const { wide, longestMs } = slot.parts[detail] as Part
            withinDeadline(
              reshapeScript.run(
                redis,
                [slot.keys[detail] as string],
                [wide ? 1 : 0, longestMs || 86_400_000],
              ),
              deadlineMs,
            ).then(askAgain, reject)
          }
          return at + 2
        },
        fail(error, isUnknown) {
          if (isUnknown && !isFailed) giveUp?.()
          isFailed = true
          reject(error)
        },
      }
      const askAgain = () => {
        if (++rounds > maxRounds) {
          reject(new LimiterUnavailable('Redis and the policy do not agree on a calendar period'))
          return
        }
        const isAll = slot.parts === policy.parts
        const plan = isAll ? policy.plan() : scriptPlan(slot.parts)
        batch.ask(
          isCluster ? slot.tag : '',
          plan,
          permits,
          slot.requestKey === undefined ? 0 : rememberRequestsMs,
          check,
        )
      }
      askAgain()
    })
  }

  async function releaseSlot(slot: Slot): Promise<boolean> {
    const keys = [...slot.keys, ...slot.keys.map(resetKey), slot.requestKey as string]
    const args = slot.parts.map((part) => (part.rule.lock ? 1 : 0))
    return (await withinDeadline(releaseScript.run(redis, keys, args), deadlineMs)) === 1
  }

  async function peekSlot(slot: Slot, permits: number) {
    const { nowMs, stores } = await withinDeadline(
      readCells(redis, peekScript, slot.keys),
      deadlineMs,
    )
    return slot.parts.map((part, index) => ({
      part,
      ...examine(part, stores[index] as CellStore, 0, nowMs, permits),
    }))
  }

  async function acquire(
    policyName: string,
    fields: Fields,
    { permits = 1, requestId }: AcquireOptions = {},
  ): Promise<Decision> {
    const policy = policyOf(policies, policyName, permits)
    const subjects = policy.subjectsOf(fields)
    const remembered = requestId === undefined ? refusals.recall(subjects, permits) : undefined
    if (remembered) {
      onRefused?.({ policy: policyName, rule: remembered.rule })
      return remembered
    }
    if (policy.parts.length === 0) return { admitted: true, remaining: [], nextInMs: 0 }
    const askedEpoch = epoch
    // Several slots give back by the id of the request, so then it must have one.
    let slots = slotsOf(policy, subjects, requestId)
    if (slots.length > 1 && requestId === undefined) {
      slots = slotsOf(policy, subjects, randomUUID())
    }
    const { answer, sentAt } = await askSlots(policy, slots, permits)
    if (answer.admitted) return admissionOf(policy, answer.left, answer.nextInMs, onObserved)
    const refusal = refusalOf(policy, answer.window, answer.retryAfterMs)
    const { rule } = policy.windows[answer.window] as { rule: Part['rule'] }
    if (askedEpoch === epoch) {
      refusals.remember(subjects[policy.rules.indexOf(rule)] as string, permits, refusal, sentAt)
    }
    onRefused?.({ policy: policyName, rule: rule.name })
    return refusal
  }

  async function askSlots(
    policy: ScriptPolicy,
    slots: readonly Slot[],
    permits: number,
  ): Promise<{ answer: Answer; sentAt: number }> {
    const giveUps = slots.map((slot) =>
      slot.requestKey === undefined
        ? undefined
        : () => unsettled.add(slot.requestKey as string, () => releaseSlot(slot)),
    )
    for (const { requestKey } of slots) if (requestKey !== undefined) unsettled.remove(requestKey)
    const left: number[] = []
    let nextInMs = 0
    let refused: (Answer & { admitted: false }) | undefined
    let sentAt = 0
    const taken: number[] = []
    try {
      for (const [index, slot] of slots.entries()) {
        if (refused && !slot.parts.some((part) => part.rule.lock)) {
          // Refused already; this slot only tells whether it holds even longer.
          for (const { part, waitMs, window } of await peekSlot(slot, permits)) {
            if (part.rule.mode === 'observe' || waitMs <= refused.retryAfterMs) continue
            refused = { admitted: false, window, retryAfterMs: waitMs }
          }
          continue
        }
        const answer = await askSlot(policy, slot, permits, giveUps[index])
        sentAt ||= answer.sentAt
        if (answer.admitted) {
          taken.push(index)
          let at = 0
          for (const part of slot.parts) {
            for (let window = 0; window < part.windows.length; window++) {
              left[part.firstWindow + window] = answer.left[at++] as number
            }
          }
          nextInMs = Math.max(nextInMs, answer.nextInMs)
        } else if (!refused || answer.retryAfterMs > refused.retryAfterMs) refused = answer
      }
    } catch (error) {
      for (const index of taken) giveUps[index]?.()
      throw error
    }
    if (!refused) return { answer: { admitted: true, left, nextInMs }, sentAt }
    await Promise.all(
      taken.map((index) => releaseSlot(slots[index] as Slot).catch(() => giveUps[index]?.())),
    )
    return { answer: refused, sentAt }
  }

  const limiter: RedisLimiter = {
    acquire,
    acquireWithin: (policy, fields, timeoutMs, acquireOptions) =>
      acquireWithin(() => acquire(policy, fields, acquireOptions), timeoutMs),

    async release(policyName, fields, requestId) {
      const policy = policyOf(policies, policyName)
      epoch++
      const slots = slotsOf(policy, policy.subjectsOf(fields), requestId)
      const released = await Promise.all(slots.map(releaseSlot))
      epoch++
      refusals.clear()
      return released.includes(true)
    },

    async peek(policyName, fields) {
      const policy = policyOf(policies, policyName)
      const slots = slotsOf(policy, policy.subjectsOf(fields), undefined)
      const looks = await Promise.all(slots.map((slot) => peekSlot(slot, 1)))
      return looks
        .flat()
        .sort((a, b) => a.part.firstWindow - b.part.firstWindow)
        .flatMap(({ states }) => states)
    },

    async reset(policyName, fields, ruleName) {
      const policy = policyOf(policies, policyName)
      epoch++
      const slots = slotsOf(policy, policy.subjectsOf(fields), undefined)
      await Promise.all(
        slots.map((slot) => {
          const keys = slot.keys.filter(
            (_, part) => ruleName === undefined || slot.parts[part]?.rule.name === ruleName,
          )
          if (keys.length === 0) return undefined
          const allKeys = [...keys, ...keys.map(resetKey)]
          const call = resetScript.run(redis, allKeys, [rememberRequestsMs])
          return withinDeadline(call, deadlineMs)
        }),
      )
      epoch++
      refusals.clear()
    },

    setPolicies(raw) {
      policies = compile(raw)
      epoch++
      refusals.clear()
    },

    recall(policyName, fields, permits = 1) {
      const policy = policyOf(policies, policyName, permits)
      const refusal = refusals.recall(policy.subjectsOf(fields), permits)
      if (refusal) onRefused?.({ policy: policyName, rule: refusal.rule })
      return refusal
    },

    windows: (policyName) => windowLimits(policyOf(policies, policyName)),
    close: () => unsettled.close(),
  }
  return limiter
}

function width(slot: Slot): number {
  return Math.max(...slot.parts.map((part) => part.longestMs))
}

/** Beside a value: when it was last reset. */
const resetKey = (key: string) => `${key}:reset`
