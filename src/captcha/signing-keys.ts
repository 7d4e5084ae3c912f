/**
 * The ES256 keys that sign passes or the tokens of known browsers, and a JWS by them. The two kinds have separate keys. An
 * earlier build and many a server read no type of a JWS, and would take a token, which lives 180 days, for a pass.
 */
import { createECDH, createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto'
import { calculateJwkThumbprint, errors, type JWK } from 'jose'

/** The claim `iss` of every JWS. */
export const issuer = 'postern'

/** One key per secret in use, the current secret first. The current key signs. */
export async function createSigningKeys(seeds: readonly ((nth: number) => Buffer)[]) {
  const keys = await Promise.all(seeds.map(createSigningKey))
  const [current] = keys as [SigningKey]
  return {
    /** The public keys, the current secret first. */
    jwks: { keys: keys.map(({ publicJwk }) => publicJwk) },

    signed: (typ: string, claims: object): string => signed(typ, claims, current),

    /** The key that a JWS names in its header. Throws if it is not one of these keys. */
    publicKeyOf({ kid }: { kid?: string }): KeyObject {
      const key = keys.find(({ id }) => id === kid)
      if (!key) throw new errors.JWKSNoMatchingKey()
      return key.publicKey
    },
  }
}

/**
 * A compact JWS (RFC 7515) by ES256. jose signs in another thread, and handing over the work costs more than the
 * signature. The option `ieee-p1363` of Node's `sign` costs as much as the signature.
 */
function signed(typ: string, payload: object, { id: kid, privateKey }: SigningKey): string {
  const parts = [{ alg: 'ES256', kid, typ }, payload]
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
 * An ES256 key. It follows from `SECRET`, so every process has the same key and nothing is stored.
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
