import { createHash, hash } from 'node:crypto'

/** 126 bits as base64url. */
const hashLength = 21

/**
 * Makes names for secret texts. Without the key, the text of a name can't be found by trying texts.
 *
 * Truncated SHA-256 over a key block and the text. A send makes seven names, and HMAC would add a seventh to its
 * processor time (docs/decisions/0007). The key fills the first block, and only 126 of 256 bits remain, so length
 * extension does not work.
 *
 * For names only. Proofs (a code's digest, a signature) use HMAC. An empty key makes plain hashes.
 */
export function createKeyedHash(key: string | Uint8Array): (text: string) => string {
  const keyBlock = key.length > 0 ? createHash('sha256').update(key).digest('hex') : ''
  return (text) => hash('sha256', keyBlock + text, 'base64url').slice(0, hashLength)
}
