/**
 * A real Redis whose scripts read the time from a key instead of `TIME`, because faking a server's
 * clock hangs it. Only that one call is exchanged; values then live longer than any test, so that it is
 * the scripts' own arithmetic that decides.
 */
import { readFileSync } from 'node:fs'
import { createHash } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { RedisClient } from '../../src/redis/script.ts'

const scripts = ['acquire-N', 'release-N', 'peek-N', 'reshape-1']
const readClock = `(function()
  local now = tonumber(redis.call('GET', 'clock'))
  return { math.floor(now / 1000), now % 1000 * 1000 }
end)()`

export function virtualRedis(client: Redis) {
  const patched = new Map(
    scripts.map((name) => {
      const source = readFileSync(new URL(`../../lua/${name}.lua`, import.meta.url), 'utf8')
      const sha = createHash('sha1').update(source).digest('hex')
      const withClock = source
        .replace("redis.call('TIME')", readClock)
        .replace("'PX', ttls[p]", "'PX', ttls[p] + 600000")
      if (name !== 'release-N' && withClock === source) throw new Error(`${name} reads no time`)
      return [sha, withClock]
    }),
  )
  const run = (sha: string, ...args: [number, ...string[]]) =>
    client.eval(patched.get(sha) as string, ...args)
  return {
    setTime: (nowMs: number) => client.set('clock', nowMs),
    redis: {
      isCluster: false,
      evalsha: run,
      callBuffer: (_: string, sha: string, ...args: [number, ...string[]]) =>
        client.callBuffer('EVAL', patched.get(sha) as string, ...args),
      del: (key: string) => client.del(key),
    } as unknown as RedisClient,
  }
}
