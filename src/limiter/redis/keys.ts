/**
 * The Redis keys of a check. A key contains a hash of the subject, never the subject. Without a `subjectKey`, a reader
 * of Redis can still find a phone number by hashing all numbers.
 *
 * Example: `postern:{3f}Zk0c81d…`. One of 4,096 hash tags spreads the subjects over a cluster, and checks with the same
 * tag share a call. The hashed text begins with the names of policy and rule, so the 108 bits also separate rules.
 */
import { randomUUID } from 'node:crypto'
import { canonical } from '../../base/canonical.ts'
import { createKeyedHash } from '../../base/keyed-hash.ts'
import { kindOf } from '../kinds.ts'
import type { Check } from '../store.ts'

/** Text, bytes, or a `KeyObject` of `node:crypto`. No types of Node are needed. */
export type SubjectKey = string | Uint8Array | { export(): Uint8Array }

/** One script call for a check. In a cluster, it has only the parts whose values are in one slot. */
export interface ScriptCall {
  readonly check: Check
  /** The keys of the values, in the order of the parts. */
  readonly keys: readonly string[]
  readonly requestKey: string | undefined
  /**
   * An id that separates calls with the same request key. It ends with `!` if calls without a request id share the key one
   * after the other.
   */
  readonly callId: string
  /** In a cluster: the hash tag of the keys, and the positions of the parts. */
  readonly place: string
}

/** The version of the value format. Values of another version have other keys, and expire. */
const format = '3'
const tagLength = 2
const hashLength = 18

export function createKeys(keyPrefix: string, subjectKey: SubjectKey, isCluster = false) {
  const isBytes = typeof subjectKey === 'string' || subjectKey instanceof Uint8Array
  const hashOf = createKeyedHash(isBytes ? subjectKey : subjectKey.export())
  const tagStart = keyPrefix.length + 1
  const tagEnd = tagStart + tagLength
  const processId = randomUUID()

  /** The key of a subject's value. */
  function valueKey(subject: string): string {
    const hash = hashOf(format + subject)
    return `${keyPrefix}{${hash.slice(0, tagLength)}}${hash.slice(tagLength, hashLength)}`
  }

  /**
   * The same request id with other fields is another request. A repeat in another process is the same request, also if that
   * process has other rules. `number`: the call has a number in place of a request id.
   */
  function slotOf(
    check: Check,
    keys: string[],
    number: number | undefined,
    place = '',
  ): ScriptCall {
    const { policy, requestId, fields } = check
    const start = isCluster ? keys[0]?.slice(0, tagEnd + 1) : keyPrefix
    const callId = randomUUID().slice(0, 8)
    if (requestId !== undefined) {
      const request = hashOf(canonical([policy.name, requestId, fields])).slice(0, hashLength)
      return { check, keys, requestKey: `${start}req${request}`, callId, place }
    }
    if (number === undefined) return { check, keys, requestKey: undefined, callId: '', place }
    const requestKey = `${start}call:${processId}:${number}`
    return { check, keys, requestKey, callId: `${callId.slice(0, -1)}!`, place }
  }

  return {
    valueKey,
    /** The key with the time of the latest reset of a value. */
    resetKey: (key: string) => `${key}:reset`,
    /**
     * The slots of a check in the order of their calls: in a cluster one or more, otherwise one; none without parts.
     */
    slotsOf(check: Check, number?: number): ScriptCall[] {
      const { asks } = check
      if (asks.length === 0) return []
      const keys = asks.map(({ part, subject }) => valueKey(subject) + part.suffix + part.client)
      if (!isCluster) return [slotOf(check, keys, number)]
      const tags = keys.map((key) => key.slice(tagStart, tagEnd))
      return [...new Set(tags)]
        .map((tag) => {
          const isHere = (_: unknown, at: number) => tags[at] === tag
          const own = { ...check, asks: asks.filter(isHere) }
          const place = ` ${tag} ${own.asks.map(({ part }) => part.index)}`
          return slotOf(own, keys.filter(isHere), number, place)
        })
        .sort((a, b) => locks(a.check) - locks(b.check) || width(b.check) - width(a.check))
    },
  }
}

const width = ({ asks }: Check) => Math.max(...asks.map(({ part }) => part.longestMs))
const locks = ({ asks }: Check) => Number(asks.some(({ part }) => kindOf(part).beginsLocks))
