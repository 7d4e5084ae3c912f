/**
 * Sessions of operators. A session is a random token in the cookie; Redis stores its hash, the id of its key and its
 * end. A session lasts a working day at most, even when it is in use, because browsers are left open. Every page checks
 * in PostgreSQL that the key is still valid, so a revoked key ends all its sessions at once.
 *
 * An operator can end all sessions of a key at once. Each session belongs to a generation of its key, and a new
 * generation ends the sessions of the previous one.
 *
 * The CSRF token is a hash of the session token. A page contains it; another site that only makes the browser send the
 * cookie cannot know it.
 */
import { hash, randomBytes } from 'node:crypto'
import type { RedisClient } from '../base/redis-script.ts'
import { reachRedis } from '../base/unavailable.ts'

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

    /** The new generation is stored for longer than any session that it ends. */
    async endAll(keyId: string): Promise<void> {
      const generation = randomBytes(16).toString('base64url')
      await reachRedis(redis.set(generationKeyOf(keyId), generation, 'PX', 2 * sessionLivesMs))
    },
  }
}

const hashOf = (use: string, token: string) => hash('sha256', `${use} ${token}`, 'base64url')
