/**
 * Who is signed in. A session is a random token in the operator's cookie; Redis has its hash, the id of the key that
 * opened it, and its end. It never outlives a working day, however busy it is: a browser that was left open is no
 * key. Whether the key still stands is asked of PostgreSQL with every page (console.ts), so a revoked key ends
 * all its sessions at once.
 *
 * The CSRF token is a hash of the session's token: whoever reads a page has it, whoever only sends the cookie has not.
 */
import { createHash, randomBytes } from 'node:crypto'
import { reachRedis } from '../base/reach-redis.ts'
import type { RedisClient } from '../redis/script.ts'

export interface Session {
  keyId: string
  csrf: string
}

export type Sessions = ReturnType<typeof createSessions>

export const sessionLivesMs = 8 * 3_600_000

/** Throws Unavailable when Redis is out of reach. */
export function createSessions({ redis, keyPrefix }: { redis: RedisClient; keyPrefix: string }) {
  const redisKeyOf = (token: string) => `${keyPrefix}console:session:${hashOf('session', token)}`

  return {
    /** The new session's token. */
    async start(keyId: string): Promise<string> {
      const token = randomBytes(32).toString('base64url')
      await reachRedis(redis.set(redisKeyOf(token), keyId, 'PX', sessionLivesMs))
      return token
    },

    async find(token: string): Promise<Session | null> {
      const keyId = await reachRedis(redis.get(redisKeyOf(token)))
      return keyId === null ? null : { keyId, csrf: hashOf('csrf', token) }
    },

    async end(token: string): Promise<void> {
      await reachRedis(redis.del(redisKeyOf(token)))
    },
  }
}

const hashOf = (use: string, token: string) =>
  createHash('sha256').update(`${use} ${token}`).digest('base64url')
