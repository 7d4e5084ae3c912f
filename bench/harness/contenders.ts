/**
 * Contenders for the limiter: libraries that one would use instead, lower bounds, and an earlier version of the
 * limiter.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import { type RedisReply, RedisStore } from 'rate-limit-redis'
import { RateLimiterRedis, RateLimiterUnion } from 'rate-limiter-flexible'
import type { createLimiter } from '../../src/limiter/index.ts'
import { repository } from './bench.ts'

/** One check of one subject. Resolves with true if it was admitted. */
export type Check = (subject: string) => Promise<boolean>

export interface Contender {
  readonly name: string
  readonly check: Check
}

/** The last version with generated scripts, byte records and two memories of refusals. */
const commitBefore = 'd60b39df7e0a9ed7a584a4aea93c8b45c526969c'

export const sortedSet = (redis: Redis) =>
  scriptContender(redis, 'sorted set (S1)', sortedSetScript)
export const floor = (redis: Redis) => scriptContender(redis, 'floor: GET + SET PX', floorScript)
export const flexibleRule = (redis: Redis) =>
  flexible(redis, 'rate-limiter-flexible, one rule', [[10, 86_400]])
export const flexibleUnion = (redis: Redis) =>
  flexible(redis, 'rate-limiter-flexible, union of 3', [
    [1, 60],
    [5, 3_600],
    [10, 86_400],
  ])

/** S1 without its faults: Redis' time, unique members, a time to live, and the wait of the refusing window. */
const sortedSetScript = `
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 86400000)
local windows = { { 86400000, 10 }, { 3600000, 5 }, { 60000, 1 } }
for _, window in ipairs(windows) do
  if redis.call('ZCOUNT', KEYS[1], '(' .. string.format('%.0f', now - window[1]), '+inf') >= window[2] then
    local holder = redis.call('ZREVRANGE', KEYS[1], window[2] - 1, window[2] - 1, 'WITHSCORES')
    return window[1] - (now - holder[2])
  end
end
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('PEXPIRE', KEYS[1], 86400000)
return 0`

const floorScript = `
redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', 86400000)
return 0`

/** The least work of any batch of exact checks, without decisions. */
export function batchedFloor(redis: Redis): Contender {
  const source = `for i = 1, #KEYS do
    redis.call('GET', KEYS[i])
    redis.call('SET', KEYS[i], ARGV[1], 'PX', 86400000)
  end
  return 0`
  const sha = createHash('sha1').update(source).digest('hex')
  let waiting: { key: string; done: (admitted: boolean) => void }[] = []
  let isLoaded: Promise<unknown> | undefined
  async function flush(): Promise<void> {
    const batch = waiting
    waiting = []
    isLoaded ??= redis.script('LOAD', source)
    await isLoaded
    await redis.evalsha(sha, batch.length, ...batch.map(({ key }) => key), 'x'.repeat(11))
    for (const { done } of batch) done(true)
  }
  return {
    name: 'floor: GET + SET PX, batched',
    check: (subject) =>
      new Promise((done) => {
        if (waiting.push({ key: `b:${subject}`, done }) === 1) setImmediate(flush)
        if (waiting.length === 128) void flush()
      }),
  }
}

function scriptContender(redis: Redis, name: string, source: string): Contender {
  const sha = createHash('sha1').update(source).digest('hex')
  let member = 0
  return {
    name,
    async check(subject) {
      const args = [1, `s:${subject}`, `${member++}`] as const
      // Redis has no scripts at first, and none after a restart.
      const answer = await redis.evalsha(sha, ...args).catch((error) => {
        if (!/NOSCRIPT/.test(String(error))) throw error
        return redis.eval(source, ...args)
      })
      return answer === 0
    },
  }
}

function flexible(redis: Redis, name: string, rules: [number, number][]): Contender {
  const limiters = rules.map(
    ([points, duration]) =>
      new RateLimiterRedis({ storeClient: redis, points, duration, keyPrefix: `f${duration}` }),
  )
  const limiter = limiters.length === 1 ? limiters[0] : new RateLimiterUnion(...limiters)
  return {
    name,
    check: (subject) =>
      (limiter as RateLimiterRedis).consume(subject).then(
        () => true,
        () => false,
      ),
  }
}

export function expressStore(redis: Redis): Contender {
  const store = new RedisStore({
    sendCommand: (command: string, ...args: string[]) =>
      redis.call(command, ...args) as Promise<RedisReply>,
  })
  store.init({ windowMs: 60_000 } as Parameters<RedisStore['init']>[0])
  return {
    name: 'express-rate-limit, rate-limit-redis, one rule',
    check: async (subject) => (await store.increment(subject)).totalHits <= 1,
  }
}

/** The limiter of `commitBefore`, unpacked into a folder. Undefined without a Git history. */
export async function loadLimiterBefore(parent: string): Promise<typeof createLimiter | undefined> {
  const folder = join(parent, 'before')
  mkdirSync(folder)
  try {
    const archive = execFileSync('git', ['archive', commitBefore, 'src', 'lua', 'package.json'], {
      cwd: repository,
      maxBuffer: 1e8,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    execFileSync('tar', ['-x', '-C', folder], { input: archive })
  } catch {
    console.log('no history here: the version before is left out')
    return undefined
  }
  symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'))
  const before = await import(join(folder, 'src/limiter/index.ts'))
  return before.createLimiter
}
