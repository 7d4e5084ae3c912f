/**
 * A real Redis whose limiter gets its time from the test, because faking a server's clock hangs it. That time is 400
 * years ahead, a whole turn of the calendar, so nothing expires by the server's clock. Keys that have expired by the
 * test's time are deleted here. So a time to live that is too short leads to a wrong decision.
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
