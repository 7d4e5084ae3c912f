/** The limiter over Redis: decides by Redis' own clock, in one script call, for any number of processes. */
import { randomUUID } from 'node:crypto'
import { createUntilAnswered } from '../../base/until-answered.ts'
import { loadScript, type Script } from '../../redis/script.ts'
import { createEngine } from '../engine.ts'
import { InvalidOption, LimiterUnavailable } from '../errors.ts'
import type { AcquireOptions, Decision, Limiter, LimiterEvents } from '../limiter.ts'
import type { CompiledPolicy } from '../policy/compile.ts'
import type { Fields, RawPolicies } from '../policy/rule.ts'
import type { Check, Found, IsGivenBack, Store } from '../store.ts'
import { createBatch, type Slot } from './batch.ts'
import type { LimiterRedis } from './client.ts'
import { askSlots, type SlotCalls } from './cluster.ts'
import { createKeys, type SubjectKey } from './keys.ts'
import { firstByte, usesOf } from './plan.ts'
import { createRefusals } from './refusals.ts'
import { createSlots } from './slots.ts'
import { withinDeadline } from './within-deadline.ts'

export interface RedisLimiterOptions extends LimiterEvents {
  readonly policies: RawPolicies
  readonly redis: LimiterRedis
  /** Default `postern:`. */
  readonly keyPrefix?: string | undefined
  /** Keys the hashes of subjects in Redis keys. Every process must have the same. */
  readonly subjectKey?: SubjectKey | undefined
  /** Default 250. */
  readonly deadlineMs?: number | undefined
  /** How long a refusal is answered from memory at most, and so how late a reset elsewhere is seen. Default 1,000; 0: never. */
  readonly rememberRefusalsMs?: number | undefined
  /** How long a request id is remembered. Default 5 minutes. */
  readonly rememberRequestsMs?: number | undefined
  /** Names this process for rules with `scope: per-client`. Default: random. */
  readonly clientId?: string | undefined
  /** Asked when Redis gives no answer, instead of throwing `LimiterUnavailable`; its limits are this process's alone. */
  readonly whenUnavailable?: Limiter | undefined
  /** For tests: stands in for Redis' clock. */
  readonly clock?: (() => number) | undefined
}

const maxRememberedRefusals = 20_000
const maxUnanswered = 10_000

export function createRedisLimiter(options: RedisLimiterOptions): Limiter {
  const { redis, deadlineMs = 250, rememberRequestsMs = 300_000, clock, whenUnavailable } = options
  if (typeof redis.callBuffer !== 'function') {
    throw new InvalidOption('redis', 'must be an ioredis Redis or Cluster')
  }
  const scripts = {
    release: loadScript('release-N'),
    peek: loadScript('peek-N'),
    reset: loadScript('reset-N'),
  }
  const keysOf = createKeys(options.keyPrefix ?? 'postern:', options.subjectKey ?? '')
  const slotsOf = createSlots(keysOf, redis.isCluster)
  const unanswered = createUntilAnswered({
    maxAgeMs: rememberRequestsMs,
    maxEntries: maxUnanswered,
  })
  const ask = createBatch({ redis, deadlineMs, rememberRequestsMs, clock })
  const refusals = createRefusals({
    maxAgeMs: options.rememberRefusalsMs ?? 1_000,
    maxSubjects: maxRememberedRefusals,
    now: () => performance.now(),
  })
  const store: Store = {
    async release(check, isGivenBack) {
      const slots = slotsOf(check)
      const released = changing(check, () =>
        Promise.all(slots.map((slot) => releaseOrGiveUp(slot, isGivenBack))),
      )
      return (await released).includes(true)
    },

    async peek(check) {
      const found = await Promise.all(slotsOf(check).map(peekSlot))
      return found.flat().sort((a, b) => a.part.index - b.part.index)
    },

    async reset(check) {
      await changing(check, () =>
        Promise.all(
          slotsOf(check).map(({ keys }) =>
            run(scripts.reset, [...keys, ...keys.map(keysOf.resetKey)], [rememberRequestsMs]),
          ),
        ),
      )
    },
  }
  const engine = createEngine(options, store, options.clientId ?? randomUUID())
  const calls: SlotCalls = {
    acquire: (slot) => ask(slot, () => calls.giveUp(slot)),
    peek: peekSlot,
    release: (slot) => releaseSlot(slot, () => true),
    giveUp: (slot) => giveUp(slot, () => true),
  }

  function run(script: Script, keys: readonly string[], args: readonly number[]): Promise<unknown> {
    const all = clock ? [...args, clock()] : args
    return withinDeadline(script.runForBytes(redis, keys, all), deadlineMs)
  }

  async function releaseSlot(slot: Slot, isGivenBack: IsGivenBack): Promise<boolean> {
    const { parts, keys, requestKey = '' } = slot
    const all = [...keys, ...keys.map(keysOf.resetKey), requestKey]
    const firsts = parts.map((part) => (isGivenBack(part) ? firstByte(part) : 0))
    return (await withinDeadline(scripts.release.runForBytes(redis, all, firsts), deadlineMs)) === 1
  }

  async function releaseOrGiveUp(slot: Slot, isGivenBack: IsGivenBack): Promise<boolean> {
    try {
      return await releaseSlot(slot, isGivenBack)
    } catch (error) {
      giveUp(slot, isGivenBack)
      throw error
    }
  }

  /** Releases the slot as soon as Redis answers again. */
  function giveUp(slot: Slot, isGivenBack: IsGivenBack): void {
    const { requestKey } = slot
    if (requestKey !== undefined) unanswered.add(requestKey, () => releaseSlot(slot, isGivenBack))
  }

  async function peekSlot({ parts, keys }: Slot): Promise<Found[]> {
    const reply = await run(scripts.peek, keys, [])
    const [now, values] = reply as [number, (Buffer | null)[]]
    return parts.map((part, index) => ({ part, uses: usesOf(part, values[index] ?? null), now }))
  }

  /** What changes the counts of subjects ends the memory of their refusals, before and after. */
  async function changing<T>({ subjects }: Check, change: () => Promise<T>): Promise<T> {
    refusals.forget(subjects)
    try {
      return await change()
    } finally {
      refusals.forget(subjects)
    }
  }

  async function acquire(
    name: string,
    fields: Fields,
    asked: AcquireOptions = {},
  ): Promise<Decision> {
    const check = engine.checkOf(name, fields, asked)
    const { policy, subjects, permits, requestId, isSolved } = check
    if (requestId === undefined || asked.isNewRequest) {
      const refusal = refusals.find(subjects, permits, isSolved)
      if (refusal) {
        options.onRefused?.({ policy: name, rule: refusal.rule })
        return refusal
      }
    }
    let slots = slotsOf(check)
    // Several slots give back by the id of the request, so then it must have one.
    if (slots.length > 1 && requestId === undefined)
      slots = slotsOf({ ...check, requestId: randomUUID() })
    const answer = await askAll(policy, slots)
    const decision = engine.decide(check, answer)
    if (!decision.admitted && !answer.taken && engine.isCurrent(check)) {
      const rule = policy.rules.findIndex((one) => one.name === decision.rule)
      refusals.remember(subjects[rule] ?? '', permits[rule] ?? 1, decision, answer.sentAt)
    }
    return decision
  }

  async function askAll(policy: CompiledPolicy, slots: readonly Slot[]) {
    for (const { requestKey } of slots) if (requestKey !== undefined) unanswered.remove(requestKey)
    const [slot] = slots
    if (!slot) return { hold: 0, taken: [] } as const
    return slots.length === 1 ? calls.acquire(slot) : askSlots(policy, calls, slots)
  }

  /** Asks the other limiter instead when Redis gives no answer, if there is one. */
  async function orElse<T>(
    name: string,
    call: Promise<T>,
    other: (limiter: Limiter) => Promise<T>,
  ) {
    try {
      return await call
    } catch (error) {
      if (!(error instanceof LimiterUnavailable)) throw error
      options.onUnavailable?.({ policy: name })
      if (!whenUnavailable) throw error
      return other(whenUnavailable)
    }
  }

  const limiter = engine.createLimiter((name, fields, asked) =>
    orElse(name, acquire(name, fields, asked), (other) => other.acquire(name, fields, asked)),
  )
  return {
    ...limiter,
    setPolicies(raw) {
      limiter.setPolicies(raw)
      refusals.forgetAll()
    },
    close: () => unanswered.close(),
  }
}
