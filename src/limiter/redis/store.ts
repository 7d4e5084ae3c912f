/** The store in Redis. One script call decides by the clock of Redis, for any number of processes. */
import { createBatcher } from '../../base/batcher.ts'
import { createUntilAnswered } from '../../base/until-answered.ts'
import { InvalidOption } from '../errors.ts'
import { scripts } from '../scripts.ts'
import {
  type Answer,
  type Check,
  type Found,
  type IsMeant,
  type Store,
  usualMemoryMs,
} from '../store.ts'
import { createBatch } from './batch.ts'
import { createRun, type LimiterRedis } from './client.ts'
import { askSlots, byPart, type SlotCalls } from './cluster.ts'
import { firstByte, usesOf } from './format.ts'
import { createKeys, type ScriptCall, type SubjectKey } from './keys.ts'
import { createRefusals } from './refusals.ts'

export interface RedisStoreOptions {
  readonly redis: LimiterRedis
  /** Default `postern:`. */
  readonly keyPrefix?: string | undefined
  /** The key for the hashes of subjects. All processes need the same key. */
  readonly subjectKey?: SubjectKey | undefined
  /** Default 250. */
  readonly deadlineMs?: number | undefined
  /**
   * Longest time for which a refusal is answered from memory, in milliseconds. A reset in another process takes effect
   * after this time. Default 1,000; 0: never.
   */
  readonly rememberRefusalsMs?: number | undefined
  /** How long a request id is remembered. Default 5 minutes. */
  readonly rememberRequestsMs?: number | undefined
  /** Replaces the clock of Redis in tests. It must not be behind that clock, because keys expire by it. */
  readonly clock?: (() => number) | undefined
}

const ofAll: IsMeant = () => true
const maxSlotsPerCall = 128
/** The name of a call at one slot. */
const nameOf = ({ requestKey, callId }: ScriptCall) => `${requestKey}${callId}`

function checkOptions({ redis, deadlineMs = 250 }: RedisStoreOptions): void {
  if (typeof redis?.callBuffer !== 'function') {
    throw new InvalidOption('redis', 'must be an ioredis Redis or Cluster')
  }
  if (redis.options?.stringNumbers || redis.options?.redisOptions?.stringNumbers) {
    throw new InvalidOption('redis', 'must return numbers as numbers: remove stringNumbers')
  }
  if (!(deadlineMs >= 1 && deadlineMs < 2 ** 31)) {
    throw new InvalidOption(
      'deadlineMs',
      `must be 1 or more, and less than 2^31, not ${deadlineMs}`,
    )
  }
}

/** Throws `InvalidOption`. */
export function createRedisStore(options: RedisStoreOptions): Store {
  checkOptions(options)
  const { redis, deadlineMs = 250, rememberRequestsMs = usualMemoryMs, clock } = options
  const run = createRun(redis, deadlineMs, clock)
  const now = clock ?? (() => performance.now())
  const { keyPrefix = 'postern:', subjectKey = '' } = options
  const { slotsOf, resetKey } = createKeys(keyPrefix, subjectKey, redis.isCluster)
  const unanswered = createUntilAnswered({ maxAgeMs: rememberRequestsMs, maxEntries: 10_000 })
  const refusals = createRefusals({
    maxAgeMs: options.rememberRefusalsMs ?? 1_000,
    maxSubjects: 20_000,
    now,
  })
  const freeNumbers: number[] = []
  let lastNumber = 0
  const calls: SlotCalls = {
    acquire: createBatch(run, rememberRequestsMs, giveUp),
    peek: peekSlot,
    takeBack,
    giveUp,
  }

  async function giveBack(
    slot: ScriptCall,
    isMeant: IsMeant,
    callId: string,
    isWanted?: () => boolean,
  ): Promise<boolean> {
    const { check, keys, requestKey = '' } = slot
    const parts = check.asks.map(({ part }) => part.id + (isMeant(part) ? firstByte(part) : 0))
    const args = [...parts, callId]
    const all = [...keys, ...keys.map(resetKey), requestKey]
    return (await run(scripts.release, all, args, isWanted)) === 1
  }

  /** Gives back the uses of the call of this slot, unless another call with its request id was answered. */
  function takeBack(slot: ScriptCall): Promise<boolean> {
    return giveBack(slot, ofAll, slot.callId)
  }

  /** Calls `takeBack` when Redis answers again. A call without an answer changes nothing. */
  function giveUp(slot: ScriptCall): void {
    const { requestKey, check } = slot
    if (requestKey === undefined) return
    unanswered.add(nameOf(slot), () => changing(check, () => takeBack(slot)))
  }

  // In a cluster the keys of one call must be in one slot.
  const perCall = {
    maxItems: redis.isCluster ? 1 : maxSlotsPerCall,
    maxConcurrent: Number.POSITIVE_INFINITY,
    hasManyServers: redis.isCluster === true,
  }
  const valuesOf = createBatcher<ScriptCall, { now: number; values: unknown[] }>({
    ...perCall,
    async run(slots) {
      const keys = slots.flatMap((slot) => slot.keys)
      const [now, all] = (await run(scripts.peek, keys, [])) as [number, unknown[]]
      let end = 0
      return slots.map(({ keys: { length } }) => {
        end += length
        return { now, values: all.slice(end - length, end) }
      })
    },
  })
  const resetSlot = createBatcher<ScriptCall, void>({
    ...perCall,
    async run(slots) {
      const keys = slots.flatMap((slot) => slot.keys)
      await run(scripts.reset, [...keys, ...keys.map(resetKey)], [rememberRequestsMs])
    },
  })

  async function peekSlot(slot: ScriptCall): Promise<Found[]> {
    const { now, values } = await valuesOf(slot)
    return slot.check.asks.map((ask, place) => ({
      ask,
      uses: usesOf(ask.part, values[place], now),
      now,
    }))
  }

  /** Forgets remembered refusals of these subjects before and after a change of their counts. */
  async function changing<T>({ asks }: Check, change: () => Promise<T>): Promise<T> {
    refusals.forget(asks)
    try {
      return await change()
    } finally {
      refusals.forget(asks)
    }
  }

  function askSlotsOf(slots: readonly ScriptCall[]): Promise<Answer> {
    const [slot] = slots
    return slot && slots.length === 1 ? calls.acquire(slot) : askSlots(calls, slots)
  }

  async function askRedis(check: Check): Promise<Answer> {
    if (check.requestId === undefined) return askByNumber(check)
    const slots = slotsOf(check)
    for (const { requestKey } of slots) if (requestKey !== undefined) unanswered.remove(requestKey)
    return askSlotsOf(slots)
  }

  /**
   * A call without a request id gets a numbered one. By it the uses are given back if the answer is lost, and a command
   * that the connection sends again takes nothing. After an answer the next call uses the number, so Redis keeps no more
   * ids than there were calls at once; in a cluster, for each hash tag. There, a refused call may have uses that are not
   * given back yet. Then its number stays taken, because they are found by it.
   */
  async function askByNumber(check: Check): Promise<Answer> {
    const number = freeNumbers.pop() ?? lastNumber++
    const slots = slotsOf(check, number)
    const answer = await askSlotsOf(slots)
    if (!slots.some((slot) => unanswered.has(nameOf(slot)))) freeNumbers.push(number)
    return answer
  }

  async function askAndRemember(check: Check): Promise<Answer> {
    const sentAt = now()
    const answer = await askRedis(check)
    if (answer.taken) return answer
    const full = check.asks.find(({ part }) => part.rule === answer.hold.window.rule)
    if (full) refusals.remember(full, answer, sentAt)
    return answer
  }

  const recall = (check: Check) =>
    check.isNew ? refusals.find(check.asks, check.isSolved) : undefined

  return {
    acquire: (check) => recall(check) ?? askAndRemember(check),
    recall,

    async release(check, isMeant) {
      const releaseOne = (slot: ScriptCall) =>
        giveBack(slot, isMeant, '').catch((error) => {
          unanswered.add(slot.requestKey ?? '', (isWanted) => giveBack(slot, isMeant, '', isWanted))
          throw error
        })
      const released = changing(check, () => Promise.all(slotsOf(check).map(releaseOne)))
      return (await released).includes(true)
    },

    async peek(check) {
      const found = await Promise.all(slotsOf(check).map(peekSlot))
      return found.flat().sort(byPart)
    },

    async reset(check) {
      await changing(check, () => Promise.all(slotsOf(check).map(resetSlot)))
    },

    /** Counts of removed rules expire. */
    changeParts: () => refusals.forgetAll(),
    close: () => unanswered.close(),
  }
}
