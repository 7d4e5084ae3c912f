/**
 * Redis keys tell nobody who a subject is: a key holds a hash of fixed length. Without a `subjectKey`
 * anyone who can read Redis may still find a phone number by trying all of them.
 *
 * `postern:{3f}Zk0c81d…`: the hash tag (4,096 of them) spreads subjects over a cluster and lets checks
 * with the same tag share a call. A subject's text begins with the names of policy and rule, so the 108
 * bits keep rules apart as well as people.
 */
import type { KeyObject } from 'node:crypto'
import { canonical } from '../../base/canonical.ts'
import { createKeyedHash } from '../../crypto/keyed-hash.ts'

export type SubjectKey = string | Buffer | KeyObject

export type Keys = ReturnType<typeof createKeys>

const tagLength = 2
const hashLength = 18

export function createKeys(keyPrefix: string, subjectKey: SubjectKey) {
  const isBytes = typeof subjectKey === 'string' || Buffer.isBuffer(subjectKey)
  const hashOf = createKeyedHash(isBytes ? subjectKey : subjectKey.export())
  const tagStart = keyPrefix.length + 1
  return {
    /** The key of a subject's value. */
    valueKey(subject: string): string {
      const hash = hashOf(subject)
      return `${keyPrefix}{${hash.slice(0, tagLength)}}${hash.slice(tagLength, hashLength)}`
    },
    /** Beside a value: when it was last reset. */
    resetKey: (valueKey: string) => `${valueKey}:reset`,
    /** The key of the memory of a request, beside a value that it took from. */
    requestKey(valueKey: string, request: readonly string[]): string {
      const tag = valueKey.slice(0, tagStart + tagLength + 1)
      return `${tag}req${hashOf(canonical(request)).slice(0, hashLength)}`
    },
    tagOf: (valueKey: string) => valueKey.slice(tagStart, tagStart + tagLength),
  }
}
