import { createHash, hash } from 'node:crypto'

/** 126 bits as base64url. */
const hashLength = 21

/**
 * Names for what must not be readable: without the key it can't be found out by trying texts which one a
 * name stands for. Truncated SHA-256 over a key block and the text, because a send takes seven of them
 * and as HMACs they would take a seventh more of its processor time (docs/decisions/0007). The key fills the
 * first block, and cutting 256 bits to 126 leaves nothing to extend. For names only: what proves
 * something (a code's digest, a signature) is an HMAC. An empty key names texts by a plain hash.
 */
export function createKeyedHash(key: string | Buffer): (text: string) => string {
  const keyBlock = key.length > 0 ? createHash('sha256').update(key).digest('hex') : ''
  return (text) => hash('sha256', keyBlock + text, 'base64url').slice(0, hashLength)
}
