/**
 * Redis keys tell nobody who a subject is: a key holds a hash of fixed length. Without a `subjectKey`
 * anyone who can read Redis may still find a phone number by trying all of them.
 *
 * `postern:{3f}Zk0c81d…`: the hash tag (4,096 of them) spreads subjects over a cluster and lets checks
 * with the same tag share a call. A subject's text begins with the names of policy and rule, so the 108
 * bits keep rules apart as well as people. 28 characters are what Redis' allocator gives 32 bytes for.
 */
import type { KeyObject } from 'node:crypto'
import { canonical } from '../base/canonical.ts'
import { createKeyedHash } from '../base/keyed-hash.ts'

export type SubjectKey = string | Buffer | KeyObject

const tagLength = 2
const hashLength = 18

export function createSubjectKeys(keyPrefix: string, subjectKey: SubjectKey = '') {
  const hashOf = createKeyedHash(bytesOf(subjectKey))
  const tagStart = keyPrefix.length + 1
  return {
    /** The key of a subject's value; `subject` names policy and rule too. */
    valueKey(subject: string): string {
      const digest = hashOf(subject)
      return `${keyPrefix}{${digest.slice(0, tagLength)}}${digest.slice(tagLength, hashLength)}`
    },
    /** The key of the memory of a request, beside a value that it took from. */
    requestKey(tag: string, request: readonly string[]): string {
      return `${keyPrefix}{${tag}}req${hashOf(canonical(request)).slice(0, hashLength)}`
    },
    tagOf: (key: string) => key.slice(tagStart, tagStart + tagLength),
  }
}

function bytesOf(key: SubjectKey): string | Buffer {
  return typeof key === 'string' || Buffer.isBuffer(key) ? key : key.export()
}
