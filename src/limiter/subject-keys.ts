/**
 * Redis keys tell nobody who a subject is: a key holds a keyed hash of fixed length. Truncated SHA-256
 * over a 64-byte key block and the subject: one native call instead of HMAC's three, and cutting 256
 * bits to 80 leaves nothing to extend. Without a key it is a plain hash, which still has a fixed length
 * but lets anyone who can read Redis try phone numbers.
 *
 * `postern:{3fa}k0c81d…`: the hash tag (4,096 of them) spreads subjects over a cluster and lets checks
 * with the same tag share a call; then three characters that are the same for every key of a rule.
 */
import { createHash, hash, type KeyObject } from 'node:crypto'
import { canonical } from '../base/canonical.ts'

export type SubjectKey = string | Buffer | KeyObject

const tagLength = 3
const hashLength = 20

export function createSubjectKeys(keyPrefix: string, subjectKey: SubjectKey | undefined) {
  const keyBlock =
    subjectKey === undefined ? '' : createHash('sha256').update(bytesOf(subjectKey)).digest('hex')
  return {
    /** The key of a rule's value for a subject. */
    valueKey(ruleId: string, subject: string): string {
      const digest = hash('sha256', keyBlock + subject, 'hex')
      return `${keyPrefix}{${digest.slice(0, tagLength)}}${ruleId}${digest.slice(tagLength, hashLength)}`
    },
    /** The key of the memory of a request, beside a value that it took from. */
    requestKey(tag: string, request: readonly string[]): string {
      const digest = hash('sha256', keyBlock + canonical(request), 'hex')
      return `${keyPrefix}{${tag}}req${digest.slice(0, hashLength)}`
    },
    tagOf: (key: string) => key.slice(keyPrefix.length + 1, keyPrefix.length + 1 + tagLength),
    ruleId: (policy: string, rule: string) =>
      hash('sha256', canonical([policy, rule]), 'hex').slice(0, 3),
  }
}

function bytesOf(key: SubjectKey): string | Buffer {
  return typeof key === 'string' || Buffer.isBuffer(key) ? key : key.export()
}
