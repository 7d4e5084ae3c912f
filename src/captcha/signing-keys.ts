/**
 * The keys that sign passes, ES256. They follow from `SECRET`, so every process has the same ones and
 * nothing has to be kept; while `SECRET_PREVIOUS` is set, what the previous secret signed stays good.
 */
import { createECDH, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { calculateJwkThumbprint, type JWK } from 'jose'

export interface SigningKey {
  /** RFC 7638. */
  readonly id: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
  /** As `/.well-known/jwks.json` shows it. */
  readonly publicJwk: JWK
}

/** Where the numbers of a P-256 private key end (SEC 2, 2.4.2). */
const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n

/** `seedOf` gives 32 secret bytes for a number; the first that make a key are taken. */
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

/** All but one of 2³² are. */
function firstInOrder(seedOf: (nth: number) => Buffer): Buffer {
  for (let nth = 0; ; nth++) {
    const seed = seedOf(nth)
    const number = BigInt(`0x${seed.toString('hex')}`)
    if (number > 0n && number < order) return seed
  }
}
