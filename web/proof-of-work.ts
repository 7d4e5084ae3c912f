/**
 * Solves altcha's proof of work, version 2: derives a key for each counter until one has the prefix of the challenge. The
 * PBKDF2 of the browser runs outside the page's thread. So it needs no worker, which a strict Content-Security-Policy
 * could forbid.
 */

export interface AltchaChallenge {
  parameters: {
    algorithm: string
    nonce: string
    salt: string
    cost: number
    keyLength: number
    keyPrefix: string
  }
  signature: string
}

/** Parallel derivations. More of them are not faster on any device. */
const lanes = 8
const maxCounter = 10_000_000

export class UnsolvableError extends Error {}

/** The value of `challenge` in a request. Throws UnsolvableError, or the reason of the signal. */
export async function solveChallenge(
  challenge: AltchaChallenge,
  signal?: AbortSignal,
): Promise<string> {
  const { algorithm, nonce, salt, cost, keyLength, keyPrefix } = challenge.parameters
  const hash = hashOf(challenge)
  if (!hash) throw new UnsolvableError(`no ${algorithm} here`)
  const derivation = { name: 'PBKDF2', hash, salt: bytesOf(salt), iterations: cost }
  const start = bytesOf(nonce)
  let next = 0
  let found: { counter: number; derivedKey: string } | undefined

  async function tryCounters(): Promise<void> {
    // Each derivation has a new buffer, because the browser may still read the previous one.
    const password = new Uint8Array(start.length + 4)
    password.set(start)
    const view = new DataView(password.buffer)
    while (!found && next < maxCounter) {
      signal?.throwIfAborted()
      const counter = next++
      view.setUint32(start.length, counter)
      const key = await crypto.subtle.importKey('raw', password, 'PBKDF2', false, ['deriveBits'])
      const bits = await crypto.subtle.deriveBits(derivation, key, keyLength * 8)
      const derivedKey = hexOf(new Uint8Array(bits))
      if (derivedKey.startsWith(keyPrefix)) found = { counter, derivedKey }
    }
  }

  await Promise.all(Array.from({ length: lanes }, tryCounters))
  if (!found) throw new UnsolvableError('no counter fits')
  return btoa(JSON.stringify({ challenge, solution: found }))
}

/** The hash for the challenge. Undefined if this page can solve none such, however often it tries. */
export const hashOf = ({ parameters: { algorithm } }: AltchaChallenge): string | undefined =>
  // Without TLS, browsers have no `crypto.subtle`, except at localhost.
  crypto.subtle && /^PBKDF2\/(SHA-(?:256|384|512))$/.exec(algorithm)?.[1]

const bytesOf = (hex: string) =>
  Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))

const hexOf = (bytes: Uint8Array) =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
