/**
 * Number of refusals of each rule and of passed codes, by app and hour, for the console's first page. No row has these
 * numbers, and metrics belong to one process.
 *
 * Each hour of Redis' clock is one hash that lives a day. A field is made of an app, a policy and a rule. Only operators
 * create those, so a flood makes numbers larger and adds no field. A process writes one sum per field and second.
 */

import type { RedisClient } from '../base/redis-script.ts'
import { reachRedis } from '../base/unavailable.ts'
import { createAsideWriter } from './aside-writer.ts'
import { redisNowMs } from './redis-now.ts'

/** `dropped`: refusals and checks that the recorder dropped. They belong to no app. */
export type Tallied = 'passed' | 'refused' | 'challenged' | 'dropped'

export interface TallyEntry {
  what: Tallied
  /** Empty for `dropped`. */
  app: string
  /** Present only for refusals and challenges, as is `rule`. */
  policy?: string | undefined
  rule?: string | undefined
}

export interface HourTally {
  /** The beginning of the hour. */
  atMs: number
  counts: readonly (TallyEntry & { count: number })[]
}

export type ReadTally = () => Promise<HourTally[]>

const hourMs = 3_600_000
const hours = 24
/** An hour is shown as one of the last 24 hours, so its sums must live longer than that. */
const livesMs = (hours + 1) * hourMs
const everyMs = 1_000
/** Enough for ten rules for each of a hundred apps in one second. */
const maxFields = 1_000

interface Sum {
  field: string
  count: number
}

const keyOf = (keyPrefix: string, hour: number) => `${keyPrefix}history:hour:${hour}`

const hourNow = async (redis: RedisClient) => Math.floor((await redisNowMs(redis)) / hourMs)

export function createTally(deps: {
  redis: RedisClient
  keyPrefix: string
  onDropped: (sums: number) => void
}) {
  const { redis, keyPrefix, onDropped } = deps
  /** Sums of the current turn, by field. */
  const sums = new Map<string, Sum>()
  const writer = createAsideWriter<Sum>({
    everyMs,
    maxItems: maxFields,
    makeRoom: () => false,
    write,
    onDropped,
  })

  async function write(turn: readonly Sum[]): Promise<void> {
    sums.clear()
    const key = keyOf(keyPrefix, await hourNow(redis))
    const commands = redis.multi()
    for (const { field, count } of turn) commands.hincrby(key, field, count)
    await commands.pexpire(key, livesMs).exec()
  }

  return {
    add({ what, app, policy = '', rule = '' }: TallyEntry, count = 1): void {
      const field = JSON.stringify([what, app, policy, rule])
      const sum = sums.get(field)
      if (sum) {
        sum.count += count
        return
      }
      const first = { field, count }
      if (writer.add(first)) sums.set(field, first)
    },
    close: writer.close,
  }
}

/** Reads the last 24 hours, the current one included, oldest first. Throws Unavailable. */
export function createReadTally(redis: RedisClient, keyPrefix: string): ReadTally {
  return () => reachRedis(readAll())

  async function readAll(): Promise<HourTally[]> {
    const last = await hourNow(redis)
    const wanted = Array.from({ length: hours }, (_, at) => last - hours + 1 + at)
    return Promise.all(
      wanted.map(async (hour) => {
        const fields = Object.entries(await redis.hgetall(keyOf(keyPrefix, hour)))
        const counts = fields.map(([field, count]) => {
          const [what, app, policy, rule] = JSON.parse(field)
          return { what, app, policy, rule, count: Number(count) }
        })
        return { atMs: hour * hourMs, counts }
      }),
    )
  }
}
