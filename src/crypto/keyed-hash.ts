import { createHash, hash } from 'node:crypto'

/** 126 bits as base64url. */
const hashLength = 21

/**
 * Names for what must not be readable: without the key nobody can tell which text a name stands for by
 * trying texts. Truncated SHA-256 over a 64-byte key block and the text: one native call instead of the
 * three of an HMAC, a fifth of its time, and cutting 256 bits to 126 leaves nothing to extend. For
 * names only: what proves something (a code's digest, a signature) is an HMAC.
 */
export function createKeyedHash(key: string | Buffer): (text: string) => string {
  const keyBlock = createHash('sha256').update(key).digest('hex')
  return (text) => hash('sha256', keyBlock + text, 'base64url').slice(0, hashLength)
}
