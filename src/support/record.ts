/**
 * What is kept of a decision: enough to decide it again, and nobody readable. What identifies somebody is a short
 * keyed hash, so that equal values stay equal; the rest is plain. A record is one JSON array, because there are
 * many: some 200 bytes of Redis each.
 */
import type { Secrets } from '../crypto/secrets.ts'
import { fields as fieldFacts } from '../rules/fields.ts'
import type { Fields } from '../rules/quota.ts'

/** What came of a request: let through, or held by a rule. */
export type Outcome = 'admitted' | { rule: string; isAsked: boolean }

export interface DecidedRecord {
  kind: 'decided'
  atMs: number
  /** So many times within a second; more than 1 only of refusals. */
  times: number
  policy: string
  /** By which it is given back. */
  id: string
  outcome: Outcome
  /** Rules that ask for a challenge let it pass. */
  isSolved: boolean
  /** As the limiter saw them, with hashes for what identifies somebody. */
  fields: Fields
  /** 1 of 2^share recipients was recorded then: those of that level and above. */
  share: number
  /** The recipient's. */
  level: number
}

export type DecisionRecord =
  | DecidedRecord
  /** It could not be sent after all. */
  | { kind: 'released'; atMs: number; id: string; share: number }
  /** The check `id` passed by the code of `sentId`. */
  | { kind: 'passed'; atMs: number; id: string; sentId: string; share: number }
  /** No request: only that so much is recorded from now on. */
  | { kind: 'share'; atMs: number; share: number }

const fieldNames = Object.keys(fieldFacts)

const hashLength = 8
const idLength = 12

export const shortId = (id: string) => id.slice(-idLength)

/** Hashes of the values of fields. */
export function createHashes(secrets: Pick<Secrets, 'subjectHashes'>) {
  return (field: string, value: string): string => {
    // A phone's mailbox is the phone itself, and stays so.
    const kind = field === 'mailbox' ? 'to' : field
    return (secrets.subjectHashes(['replay', kind, value])[0] ?? '').slice(0, hashLength)
  }
}

/**
 * A recipient's level: half of them have 1 or more, a quarter 2 or more, and so on up to 32. Asked for every request of a
 * flood, so it is no cryptographic hash; it tells no more of a recipient than that small number.
 */
export function createLevels(secrets: Pick<Secrets, 'subjectHashes'>) {
  const [seedText = ''] = secrets.subjectHashes(['replay', 'level'])
  const seed = Buffer.from(seedText, 'base64url').readInt32BE(0)
  return (to: string): number => {
    let mixed = seed
    for (let at = 0; at < to.length; at++) mixed = Math.imul(mixed ^ to.charCodeAt(at), 0x01000193)
    // Every bit of the sum must reach the highest ones, which are counted.
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
    return Math.clz32(mixed ^ (mixed >>> 16))
  }
}

type Stored =
  | [
      'd',
      number,
      number,
      number,
      string,
      string,
      0 | string,
      0 | 1,
      0 | 1,
      ...(string | number | null)[],
    ]
  | ['x', number, string]
  | ['p', number, string, string]
  | ['k', number]

/** Without its time, which Redis gives it. */
export function encode(
  record: DecisionRecord,
  hashOf: (field: string, value: string) => string,
): string {
  const stored = storedOf(record, hashOf)
  return JSON.stringify(stored)
}

function storedOf(
  record: DecisionRecord,
  hashOf: (field: string, value: string) => string,
): Stored {
  if (record.kind === 'share') return ['k', record.share]
  if (record.kind === 'released') return ['x', record.share, shortId(record.id)]
  if (record.kind === 'passed') {
    return ['p', record.share, shortId(record.id), shortId(record.sentId)]
  }
  const { share, level, times, policy, id, outcome, isSolved, fields } = record
  const [rule, isAsked] =
    outcome === 'admitted' ? [0 as const, false] : [outcome.rule, outcome.isAsked]
  const values = fieldNames.map((name) => {
    const value = fields[name]
    if (value === undefined) return null
    if (name === 'mailbox' && value === fields.to) return 0
    if (name === 'keyId') return shortId(String(value))
    return fieldFacts[name]?.isHashed && value !== '' ? hashOf(name, String(value)) : value
  })
  return [
    'd',
    share,
    level,
    times,
    policy,
    shortId(id),
    rule,
    isAsked ? 1 : 0,
    isSolved ? 1 : 0,
    ...values,
  ]
}

/** Undefined for what is none of ours. */
export function decode(line: string): DecisionRecord | undefined {
  const start = line.indexOf('[')
  const atMs = Number(line.slice(0, start))
  const stored = JSON.parse(line.slice(start)) as Stored
  if (stored[0] === 'k') return { kind: 'share', atMs, share: stored[1] }
  if (stored[0] === 'x') return { kind: 'released', atMs, share: stored[1], id: stored[2] }
  if (stored[0] === 'p') {
    return { kind: 'passed', atMs, share: stored[1], id: stored[2], sentId: stored[3] }
  }
  if (stored[0] !== 'd') return undefined
  const [, share, level, times, policy, id, rule, isAsked, isSolved, ...values] = stored
  const known = fieldNames.map((name, at) => [name, values[at]] as const)
  const fields = Object.fromEntries(known.filter(([, value]) => value !== null)) as Record<
    string,
    string | number
  >
  if (fields.mailbox === 0) fields.mailbox = fields.to as string
  return {
    kind: 'decided',
    ...{ atMs, share, level, times, policy, id, fields },
    outcome: rule === 0 ? 'admitted' : { rule, isAsked: isAsked === 1 },
    isSolved: isSolved === 1,
  }
}
