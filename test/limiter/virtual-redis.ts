/**
 * A real Redis whose scripts read the time from a key instead of `TIME`, because faking a server's
 * clock hangs it. Values expire by the same clock: their times to live are kept in a sorted set, so one
 * that is too short shows as a wrong decision.
 */

import { createHash } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { RedisClient } from '../../src/redis/script.ts'

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
  const patched = new Map<string, string>()
  function patch(source: string): string {
    const withClock = source
      .replace(/(redis\.)?call\('TIME'\)/, readClock)
      .replace(/call\('SET', (KEYS\[key \+ p\]), (news\[p\]), 'PX', (ttls\[p\])\)/, setUntil)
    if (source.includes('news[p]') && !withClock.includes('ZADD')) throw new Error('no write found')
    if (withClock.includes("call('TIME')")) throw new Error('the real time is read')
    patched.set(createHash('sha1').update(source).digest('hex'), withClock)
    return withClock
  }
  const sourceOf = (sha: string) => {
    const source = patched.get(sha)
    if (source === undefined) throw new Error('NOSCRIPT, the limiter is to send it')
    return source
  }
  return {
    setTime: (nowMs: number) => client.eval(expire, 0, nowMs),
    redis: {
      isCluster: false,
      evalsha: async (sha: string, ...args: [number, ...string[]]) =>
        client.eval(sourceOf(sha), ...args),
      eval: async (source: string, ...args: [number, ...string[]]) =>
        client.eval(patch(source), ...args),
      callBuffer: async (command: string, script: string, ...args: [number, ...string[]]) =>
        client.callBuffer('EVAL', command === 'EVAL' ? patch(script) : sourceOf(script), ...args),
      del: (key: string) => client.del(key),
    } as unknown as RedisClient,
  }
}
