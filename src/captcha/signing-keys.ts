/**
 * The ES256 keys that sign passes. They follow from `SECRET`, so every process has the same keys and nothing is
 * stored. While `SECRET_PREVIOUS` is set, signatures of the previous secret stay valid.
 */
import { createECDH, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { calculateJwkThumbprint, type JWK } from 'jose'

export interface SigningKey {
  /** The thumbprint of RFC 7638. */
  readonly id: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
  /** The form in `/.well-known/jwks.json`. */
  readonly publicJwk: JWK
}

/** The upper end of P-256 private keys (SEC 2, 2.4.2). */
const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n

/** `seedOf` returns 32 secret bytes for a number. The key is made from the first of these that are valid. */
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
