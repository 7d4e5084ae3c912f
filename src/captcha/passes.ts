/**
 * Passes: a page gives one to its server as proof that a code was right. A pass is a compact JWS that is valid for
 * five minutes. It names app, scene, channel and recipient (a keyed hash). Anyone can check it with the published
 * keys. Postern accepts each pass once.
 */
import { randomUUID } from 'node:crypto'
import { errors, jwtVerify } from 'jose'
import type { Channel } from '../base/channel.ts'
import { createOnce } from '../base/redis-once.ts'
import type { RedisClient } from '../base/redis-script.ts'
import type { Secrets } from '../crypto/secrets.ts'
import { createSigningKeys, issuer } from './signing-keys.ts'

export interface Passed {
  app: string
  scene: string
  channel: Channel
  to: string
}

export type PassVerdict =
  | { valid: true; scene: string; channel: string; verifiedAt: Date }
  | { valid: false; reason: PassRefusal }

export type PassRefusal = (typeof passRefusals)[number]

/** `invalid`: forged. `used`: accepted before. `other_app`, `other_recipient`: genuine, and for another one. */
export const passRefusals = ['invalid', 'expired', 'used', 'other_app', 'other_recipient'] as const

export type Passes = Awaited<ReturnType<typeof createPasses>>

const typ = 'JWT'
const lifeSeconds = 300
/** The greatest difference between the PostgreSQL times of processes with one Redis. */
const clockToleranceMs = 30_000

export async function createPasses(deps: {
  redis: RedisClient
  keyPrefix: string
  secrets: Pick<Secrets, 'passSeeds' | 'passSubjects'>
  /** PostgreSQL's time. */
  nowMs: () => number
}) {
  const { redis, keyPrefix, secrets, nowMs } = deps
  const once = createOnce(redis, lifeSeconds * 1_000)
  const keys = await createSigningKeys(secrets.passSeeds)

  /** False if another request has used the pass. After a 503 the pass is free again. */
  async function takeFor(id: string, untilMs: number): Promise<boolean> {
    const aliveMs = Math.max(1, untilMs - nowMs()) + clockToleranceMs
    return (await once.take(`${keyPrefix}pass:${id}`, randomUUID(), aliveMs)) !== 0
  }

  async function read(token: string, app: string) {
    if (!token.split('.').every(isCanonical)) return { reason: 'invalid' } as const
    try {
      const { payload } = await jwtVerify(token, keys.publicKeyOf, {
        ...{ algorithms: ['ES256'], typ, issuer, audience: app },
        currentDate: new Date(nowMs()),
      })
      return { payload }
    } catch (error) {
      if (error instanceof errors.JWTExpired) return { reason: 'expired' } as const
      const isOfOtherApp = error instanceof errors.JWTClaimValidationFailed && error.claim === 'aud'
      return { reason: isOfOtherApp ? 'other_app' : 'invalid' } as const
    }
  }

  return {
    /** The public keys, the current secret first. */
    jwks: keys.jwks,

    issue({ app, scene, channel, to }: Passed): string {
      const iat = Math.floor(nowMs() / 1_000)
      const [sub] = secrets.passSubjects(app, channel, to)
      const times = { iat, exp: iat + lifeSeconds, jti: randomUUID() }
      return keys.signed(typ, { scene, channel, iss: issuer, aud: app, sub, ...times })
    },

    /** `recipient`: the expected owner of the pass. A pass that is not valid is not used up. Throws Unavailable. */
    async verify(
      token: string,
      app: string,
      recipient?: { channel: Channel; to: string },
    ): Promise<PassVerdict> {
      const { payload, reason } = await read(token, app)
      if (!payload) return { valid: false, reason }
      const { sub = '', jti = '', scene, channel, iat = 0, exp = 0 } = payload
      if (recipient && !secrets.passSubjects(app, recipient.channel, recipient.to).includes(sub)) {
        return { valid: false, reason: 'other_recipient' }
      }
      if (!(await takeFor(jti, exp * 1_000))) return { valid: false, reason: 'used' }
      return {
        valid: true,
        scene: String(scene),
        channel: String(channel),
        verifiedAt: new Date(iat * 1_000),
      }
    },

    close: once.close,
  }
}

/** Base64url can spell the same bytes in several ways: with padding, or with unused bits set. */
const isCanonical = (part: string) => Buffer.from(part, 'base64url').toString('base64url') === part
