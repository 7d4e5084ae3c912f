/**
 * Where the values of a check lie. Redis keys tell nobody who a subject is: a key holds a hash of fixed
 * length. Without a `subjectKey` anyone who can read Redis may still find a phone number by trying all of
 * them.
 *
 * `postern:{3f}Zk0c81d…`: the hash tag (4,096 of them) spreads subjects over a cluster and lets checks
 * with the same tag share a call. A subject's text begins with the names of policy and rule, so the 108
 * bits keep rules apart as well as people.
 */
import { type KeyObject, randomUUID } from 'node:crypto'
import { canonical } from '../../base/canonical.ts'
import { createKeyedHash } from '../../base/keyed-hash.ts'
import { kindOf } from '../kinds.ts'
import type { Check } from '../store.ts'

export type SubjectKey = string | Buffer | KeyObject

/** A check, or in a cluster those of its parts whose values lie together. */
export interface Slot {
  readonly check: Check
  /** By part. */
  readonly keys: readonly string[]
  readonly requestKey: string | undefined
  /** Of this call among those that ask by the same request id. */
  readonly callId: string
  /** In a cluster: the hash tag of the keys, and which parts they are of. */
  readonly place: string
}

/** Of the values. Those of another lie under other keys, and end by their times to live. */
const format = '3'
const tagLength = 2
const hashLength = 18

export function createKeys(keyPrefix: string, subjectKey: SubjectKey, isCluster = false) {
  const isBytes = typeof subjectKey === 'string' || Buffer.isBuffer(subjectKey)
  const hashOf = createKeyedHash(isBytes ? subjectKey : subjectKey.export())
  const tagStart = keyPrefix.length + 1
  const tagEnd = tagStart + tagLength

  /** The key of a subject's value. */
  function valueKey(subject: string): string {
    const hash = hashOf(format + subject)
    return `${keyPrefix}{${hash.slice(0, tagLength)}}${hash.slice(tagLength, hashLength)}`
  }

  /** `allKeys` are those of the whole check: the same id with others is another request. */
  function slotOf(check: Check, keys: string[], allKeys: readonly string[], place = ''): Slot {
    const { policy, requestId } = check
    if (requestId === undefined) return { check, keys, requestKey: undefined, callId: '', place }
    const callId = randomUUID().slice(0, 8)
    const request = hashOf(canonical([policy.name, requestId, ...allKeys]))
    const tag = keys[0]?.slice(0, tagEnd + 1) ?? ''
    return { check, keys, requestKey: `${tag}req${request.slice(0, hashLength)}`, callId, place }
  }

  return {
    valueKey,
    /** Beside a value: when it was last reset. */
    resetKey: (key: string) => `${key}:reset`,
    /** One on a server, one or more in a cluster in the order in which they are asked; none without parts. */
    slotsOf(check: Check): Slot[] {
      const { asks } = check
      if (asks.length === 0) return []
      const keys = asks.map(({ part, subject }) => valueKey(subject) + part.suffix)
      if (!isCluster) return [slotOf(check, keys, keys)]
      const tags = keys.map((key) => key.slice(tagStart, tagEnd))
      return [...new Set(tags)]
        .map((tag) => {
          const isHere = (_: unknown, at: number) => tags[at] === tag
          const own = { ...check, asks: asks.filter(isHere) }
          const place = ` ${tag} ${own.asks.map(({ part }) => part.index)}`
          return slotOf(own, keys.filter(isHere), keys, place)
        })
        .sort((a, b) => locks(a.check) - locks(b.check) || width(b.check) - width(a.check))
    },
  }
}

const width = ({ asks }: Check) => Math.max(...asks.map(({ part }) => part.longestMs))
const locks = ({ asks }: Check) => Number(asks.some(({ part }) => kindOf(part).beginsLocks))
