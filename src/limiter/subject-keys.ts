/**
 * Redis keys tell nobody who a subject is: a key holds a keyed hash of fixed length. Truncated SHA-256
 * over a 64-byte key block and the subject: one native call instead of HMAC's three, and cutting 256
 * bits to 108 leaves nothing to extend. Without a key it is a plain hash, which still has a fixed length
 * but lets anyone who can read Redis try phone numbers.
 *
 * `postern:{3f}Zk0c81d…`: the hash tag (4,096 of them) spreads subjects over a cluster and lets checks
 * with the same tag share a call. A subject's text begins with the names of policy and rule, so the 108
 * bits keep rules apart as well as people. 28 characters are what Redis' allocator gives 32 bytes for.
 */
import { createHash, hash, type KeyObject } from 'node:crypto'
import { canonical } from '../base/canonical.ts'

export type SubjectKey = string | Buffer | KeyObject

const tagLength = 2
const hashLength = 18

export function createSubjectKeys(keyPrefix: string, subjectKey: SubjectKey | undefined) {
  const keyBlock =
    subjectKey === undefined ? '' : createHash('sha256').update(bytesOf(subjectKey)).digest('hex')
  const tagStart = keyPrefix.length + 1
  return {
    /** The key of a subject's value; `subject` names policy and rule too. */
    valueKey(subject: string): string {
      const digest = hash('sha256', keyBlock + subject, 'base64url')
      return `${keyPrefix}{${digest.slice(0, tagLength)}}${digest.slice(tagLength, hashLength)}`
    },
    /** The key of the memory of a request, beside a value that it took from. */
    requestKey(tag: string, request: readonly string[]): string {
      const digest = hash('sha256', keyBlock + canonical(request), 'base64url')
      return `${keyPrefix}{${tag}}req${digest.slice(0, hashLength)}`
    },
    tagOf: (key: string) => key.slice(tagStart, tagStart + tagLength),
  }
}

function bytesOf(key: SubjectKey): string | Buffer {
  return typeof key === 'string' || Buffer.isBuffer(key) ? key : key.export()
}
