/**
 * A real Redis whose scripts read the time from a key instead of `TIME`, because faking a server's
 * clock hangs it. Values expire by the same clock: their times to live are kept in a sorted set, so one
 * that is too short shows as a wrong decision.
 */

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'
import type { RedisClient } from '../../src/redis/script.ts'

const scripts = ['acquire-N', 'release-N', 'peek-N', 'reset-N', 'reshape-1']
const readClock = `(function()
  local now = tonumber(redis.call('GET', 'clock'))
  return { math.floor(now / 1000), now % 1000 * 1000 }
end)()`

const setUntil = `call('SET', $1, $2) call('ZADD', 'expiries', now + $3, $1)`
const expire = `for _, key in ipairs(redis.call('ZRANGE', 'expiries', '-inf', ARGV[1], 'BYSCORE')) do
  redis.call('DEL', key)
  redis.call('ZREM', 'expiries', key)
end
redis.call('SET', 'clock', ARGV[1])`

export function virtualRedis(client: Redis) {
  const patched = new Map(
    scripts.map((name) => {
      const source = readFileSync(new URL(`../../lua/${name}.lua`, import.meta.url), 'utf8')
      const sha = createHash('sha1').update(source).digest('hex')
      const withClock = source
        .replace("redis.call('TIME')", readClock)
        .replace(/call\('SET', (KEYS\[key \+ p\]), (values\[p\]), 'PX', (ttls\[p\])\)/, setUntil)
      if (name !== 'release-N' && withClock === source) throw new Error(`${name} reads no time`)
      return [sha, withClock]
    }),
  )
  const run = (sha: string, ...args: [number, ...string[]]) =>
    client.eval(patched.get(sha) as string, ...args)
  return {
    setTime: (nowMs: number) => client.eval(expire, 0, nowMs),
    redis: {
      isCluster: false,
      evalsha: run,
      callBuffer: (_: string, sha: string, ...args: [number, ...string[]]) =>
        client.callBuffer('EVAL', patched.get(sha) as string, ...args),
      del: (key: string) => client.del(key),
    } as unknown as RedisClient,
  }
}
