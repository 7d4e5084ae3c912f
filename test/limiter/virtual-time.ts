/**
 * A real Redis whose limiter is told the time, because faking a server's clock hangs it. The time told is
 * 400 years ahead, a whole turn of the calendar, so that nothing expires by the server's own clock: what
 * has expired by the told one is deleted here, so a time to live that is too short shows as a wrong decision.
 */
import type { Redis } from 'ioredis'

export const turnMs = 146_097 * 86_400_000

const expire = `for _, key in ipairs(redis.call('KEYS', '*')) do
  local expiresAt = redis.call('PEXPIRETIME', key)
  if expiresAt >= 0 and expiresAt <= tonumber(ARGV[1]) then redis.call('DEL', key) end
end`

export function virtualTime(servers: readonly Redis[], startAt: number) {
  let now = startAt + turnMs
  return {
    clock: () => now,
    async set(newNow: number): Promise<void> {
      now = newNow + turnMs
      await Promise.all(servers.map((server) => server.eval(expire, 0, now)))
    },
  }
}
