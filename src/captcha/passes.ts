/**
 * Passes: a page gives one to its server as proof that a code was right. A pass is a compact JWS that is valid for
 * five minutes. It names app, scene, channel and recipient (a keyed hash). Anyone can check it with the published
 * keys. Postern accepts each pass once.
 */
import {
  createECDH,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  randomUUID,
  sign,
} from 'node:crypto'
import { calculateJwkThumbprint, errors, type JWK, jwtVerify } from 'jose'
import type { Channel } from '../base/channel.ts'
import { createOnce } from '../base/redis-once.ts'
import type { RedisClient } from '../base/redis-script.ts'
import type { Secrets } from '../crypto/secrets.ts'

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

const issuer = 'postern'
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
  const keys = await Promise.all(secrets.passSeeds.map(createSigningKey))
  const [current] = keys as [SigningKey]

  /** False if another request has used the pass. After a 503 the pass is free again. */
  async function takeFor(id: string, untilMs: number): Promise<boolean> {
    const aliveMs = Math.max(1, untilMs - nowMs()) + clockToleranceMs
    return (await once.take(`${keyPrefix}pass:${id}`, randomUUID(), aliveMs)) !== 0
  }

  async function read(token: string, app: string) {
    if (!token.split('.').every(isCanonical)) return { reason: 'invalid' } as const
    try {
      const { payload } = await jwtVerify(
        token,
        ({ kid }) => {
          const key = keys.find(({ id }) => id === kid)
          if (!key) throw new errors.JWKSNoMatchingKey()
          return key.publicKey
        },
        { algorithms: ['ES256'], issuer, audience: app, currentDate: new Date(nowMs()) },
      )
      return { payload }
    } catch (error) {
      if (error instanceof errors.JWTExpired) return { reason: 'expired' } as const
      const isOfOtherApp = error instanceof errors.JWTClaimValidationFailed && error.claim === 'aud'
      return { reason: isOfOtherApp ? 'other_app' : 'invalid' } as const
    }
  }

  return {
    /** The public keys, the current secret first. */
    jwks: { keys: keys.map(({ publicJwk }) => publicJwk) },

    issue({ app, scene, channel, to }: Passed): string {
      const iat = Math.floor(nowMs() / 1_000)
      const [sub] = secrets.passSubjects(app, channel, to)
      const times = { iat, exp: iat + lifeSeconds, jti: randomUUID() }
      return signed({ scene, channel, iss: issuer, aud: app, sub, ...times }, current)
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

/**
 * A compact JWS (RFC 7515) by ES256. jose signs in another thread, and handing over the work costs more than the
 * signature. The option `ieee-p1363` of Node's `sign` costs as much as the signature.
 */
function signed(payload: object, { id: kid, privateKey }: SigningKey): string {
  const parts = [{ alg: 'ES256', kid, typ: 'JWT' }, payload]
  const text = parts
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  const signature = twoNumbers(sign('sha256', Buffer.from(text), privateKey))
  return `${text}.${signature.toString('base64url')}`
}

/**
 * The signature of a JWS: r and s with 32 bytes each (RFC 7518, 3.4). `der` is a SEQUENCE of two INTEGERs (RFC 3279,
 * 2.2.3). An INTEGER has 33 bytes if its first bit is set, and fewer than 32 if it is small. Each length is one byte.
 */
function twoNumbers(der: Buffer): Buffer {
  const rEnd = 4 + (der[3] ?? 0)
  const numbers = Buffer.alloc(64)
  for (const [at, integer] of [der.subarray(4, rEnd), der.subarray(rEnd + 2)].entries()) {
    const number = integer.subarray(-32)
    numbers.set(number, at * 32 + 32 - number.length)
  }
  return numbers
}

/** Base64url can spell the same bytes in several ways: with padding, or with unused bits set. */
const isCanonical = (part: string) => Buffer.from(part, 'base64url').toString('base64url') === part

interface SigningKey {
  /** The thumbprint of RFC 7638. */
  readonly id: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
  /** The form in `/.well-known/jwks.json`. */
  readonly publicJwk: JWK
}

/** The upper end of P-256 private keys (SEC 2, 2.4.2). */
const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n

/**
 * The ES256 key that signs passes. It follows from `SECRET`, so every process has the same key and nothing is stored.
 * `seedOf` returns 32 secret bytes for a number. The key is made from the first of these that are valid.
 */
export async function createSigningKey(seedOf: (nth: number) => Buffer): Promise<SigningKey> {
  const seed = firstInOrder(seedOf)
  const ecdh = createECDH('prime256v1')
  ecdh.setPrivateKey(seed)
  const point = ecdh.getPublicKey()
  const publicParts = {
    kty: 'EC',
    crv: 'P-256',
    x: point.subarray(1, 33).toString('base64url'),
    y: point.subarray(33).toString('base64url'),
  }
  const privateKey = createPrivateKey({
    key: { ...publicParts, d: seed.toString('base64url') },
    format: 'jwk',
  })
  const id = await calculateJwkThumbprint(publicParts)
  const publicJwk = { ...publicParts, kid: id, alg: 'ES256', use: 'sig' }
  return { id, privateKey, publicKey: createPublicKey(privateKey), publicJwk }
}

/** All but one of 2³² seeds are valid. */
function firstInOrder(seedOf: (nth: number) => Buffer): Buffer {
  for (let nth = 0; ; nth++) {
    const seed = seedOf(nth)
    const number = BigInt(`0x${seed.toString('hex')}`)
    if (number > 0n && number < order) return seed
  }
}
