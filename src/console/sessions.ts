/**
 * Who is signed in. A session is a random token in the operator's cookie; Redis has its hash, the id of the key that
 * opened it, and its end. It never outlives a working day, however busy it is: a browser that was left open is no
 * key. Whether the key still stands is asked of PostgreSQL with every page (console.ts), so a revoked key ends
 * all its sessions at once.
 *
 * An operator may end all sessions of a key at once: each belongs to the generation of its key in which it began, and a
 * new generation ends those of the one before.
 *
 * The CSRF token is a hash of the session's token: whoever reads a page has it, whoever only sends the cookie has not.
 */
import { hash, randomBytes } from 'node:crypto'
import { reachRedis } from '../base/reach-redis.ts'
import type { RedisClient } from '../base/redis-script.ts'

export interface Session {
  keyId: string
  csrf: string
}

export type Sessions = ReturnType<typeof createSessions>

export const sessionLivesMs = 8 * 3_600_000

/** Throws Unavailable when Redis is out of reach. */
export function createSessions({ redis, keyPrefix }: { redis: RedisClient; keyPrefix: string }) {
  const redisKeyOf = (token: string) => `${keyPrefix}console:session:${hashOf('session', token)}`
  const generationKeyOf = (keyId: string) => `${keyPrefix}console:generation:${keyId}`

  return {
    /** The new session's token. */
    async start(keyId: string): Promise<string> {
      const token = randomBytes(32).toString('base64url')
      const generation = (await reachRedis(redis.get(generationKeyOf(keyId)))) ?? ''
      const value = `${keyId} ${generation}`
      await reachRedis(redis.set(redisKeyOf(token), value, 'PX', sessionLivesMs))
      return token
    },

    async find(token: string): Promise<Session | null> {
      const value = await reachRedis(redis.get(redisKeyOf(token)))
      if (value === null) return null
      const [keyId = '', generation] = value.split(' ')
      const current = await reachRedis(redis.get(generationKeyOf(keyId)))
      const isEnded = current !== null && current !== generation
      return isEnded ? null : { keyId, csrf: hashOf('csrf', token) }
    },

    async end(token: string): Promise<void> {
      await reachRedis(redis.del(redisKeyOf(token)))
    },

    /** It outlives every session that it ends. */
    async endAll(keyId: string): Promise<void> {
      const generation = randomBytes(16).toString('base64url')
      await reachRedis(redis.set(generationKeyOf(keyId), generation, 'PX', 2 * sessionLivesMs))
    },
  }
}

const hashOf = (use: string, token: string) => hash('sha256', `${use} ${token}`, 'base64url')
