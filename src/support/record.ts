/**
 * The one shape in which a decision is kept, which the recorder writes and its readers read: enough for support to tell a
 * refusal and for a replay to decide the request again, and nobody readable. What identifies somebody is a short keyed
 * hash, so that equal values stay equal; what a lock counts beside its recipient is sealed.
 *
 * A record is one line: its time and a JSON array of kind, recipient and result or refusal. That is all that a recipient's
 * ring has of it; in the sample follow the rest and the fields, by their catalogue. 0 or the end stands for nothing.
 */
import type { Channel } from '../base/channel.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { Policies } from '../limiter/index.ts'
import { fields as fieldFacts } from '../rules/fields.ts'
import type { Fields, OnDecided } from '../rules/quota.ts'
import { findRule, valuesBeside } from '../rules/recipient-rules.ts'

/** Whose decisions support asks for: another app's are others. */
export interface Recipient {
  app: string
  channel: Channel
  to: string
}

export interface Refused {
  /** The policy that the rule is declared in. */
  policy: string
  rule: string
  window: string
  retryAfterMs: number
  /** Only asked for a challenge, which the caller had not solved. */
  challenge?: true
  /** A lock that began with the wrong code which used up the limit: that code was compared, and nothing was refused yet. */
  lockBegan?: true
  /** What the rule counts by beside what is known of a recipient, where it names the recipient. In rings alone. */
  values?: readonly string[] | undefined
}

export const checkResults = ['passed', 'mismatch', 'gone', 'refused'] as const
export type CheckResult = (typeof checkResults)[number]

interface Recorded {
  atMs: number
  /** 1 of 2^share recipients was sampled then: those of that level and above. */
  share: number
  /** The recipient's. */
  level: number
}

export interface DecidedRecord extends Recorded {
  kind: 'decided'
  /** So many times within a turn of the sample; more than 1 only of refusals. */
  times: number
  /** The policy that was asked. */
  policy: string
  /** By which it is given back. */
  id: string
  /** Absent: admitted. */
  refusal?: Refused
  /** Rules that ask for a challenge let it pass. */
  isSolved: boolean
  /** As the limiter saw them; once written, with hashes for what identifies somebody. */
  fields: Fields
}

/** The check that was decided under `id`; `sentId` is the notice whose code passed. */
export interface CheckedRecord extends Recorded {
  kind: 'checked'
  result: CheckResult
  id: string
  sentId?: string | undefined
}

export type DecisionRecord =
  | DecidedRecord
  | CheckedRecord
  /** The request could not be carried out, and what it took was given back. */
  | (Recorded & { kind: 'released'; id: string })
  /** No request: only that so much is sampled from now on. */
  | (Recorded & { kind: 'share' })

export function recordOf(
  { policy, fields, requestId, decision, isSolved }: Parameters<OnDecided>[0],
  policies: Policies,
  atMs: number,
): DecidedRecord {
  const record: DecidedRecord = {
    kind: 'decided',
    ...{ atMs, share: 0, level: 0, times: 1, policy, id: requestId, isSolved, fields },
  }
  if (decision.admitted) return record
  const { rule: name, window, retryAfterMs, challenge, isNewLock } = decision
  const rule = findRule(policies, policy, name)
  record.refusal = {
    ...{ policy: rule?.policy ?? policy, rule: name, window, retryAfterMs },
    ...(challenge && { challenge: true }),
    ...(isNewLock && { lockBegan: true }),
    values: rule && valuesBeside(rule, fields),
  }
  return record
}

const ringNameLength = 2
const whoLength = 10
const hashLength = 8
const idLength = 12

/** The list of the sample. */
export const sampleKey = (keyPrefix: string) => `${keyPrefix}history:sample`

/**
 * One of 4,096 rings and `who` marks the recipient's lines there; and the key for a check where no code lived. For each
 * secret in use, the current one's first.
 */
export const placesOf = (secrets: Secrets, keyPrefix: string, { app, channel, to }: Recipient) =>
  secrets.subjectHashes(['history', app, channel, to]).map((hash) => ({
    ring: `${keyPrefix}history:{${hash.slice(0, ringNameLength)}}`,
    goneKey: `${keyPrefix}gone:${hash}`,
    who: hash.slice(ringNameLength, ringNameLength + whoLength),
  }))

/** In a line they are their first letters. */
const kinds = ['decided', 'checked', 'released', 'share'] as const
const refusalNames = 'policy rule window retryAfterMs challenge lockBegan sealed'.split(' ')
const restNames = ['share', 'level', 'id', 'sentId', 'times', 'policy', 'isSolved']
const fieldNames = Object.keys(fieldFacts)

type Cells = Readonly<Record<string, unknown>>

const isSomething = (cell: unknown) => Boolean(cell) || cell === ''

function rowOf(names: readonly string[], cells: Cells): unknown[] {
  const row = names.map((name) => (isSomething(cells[name]) ? cells[name] : 0))
  return row.slice(0, row.findLastIndex(isSomething) + 1)
}

function cellsOf(names: readonly string[], row: readonly unknown[] = []): Cells {
  const cells = names.map((name, at) => [name, row[at]] as const)
  return Object.fromEntries(cells.filter(([, cell]) => isSomething(cell)))
}

function lineOf(record: DecisionRecord, who: string | 0, sealed?: string): unknown[] {
  const line = [record.kind[0], who]
  if (record.kind === 'checked') return [...line, record.result]
  if (record.kind !== 'decided' || !record.refusal) return [...line, 0]
  return [...line, rowOf(refusalNames, { ...record.refusal, sealed })]
}

/** For the ring of a recipient. */
export function ringLine(record: DecidedRecord | CheckedRecord, who: string, secrets: Secrets) {
  const values = record.kind === 'decided' ? record.refusal?.values : undefined
  const sealed = values && secrets.seal(JSON.stringify(values), who).toString('base64url')
  return JSON.stringify(lineOf(record, who, sealed))
}

/** The sample's hash of a field's value. A phone's mailbox is the phone itself, and stays so. */
export function hashOf(secrets: Pick<Secrets, 'subjectHashes'>, field: string, value: string) {
  const [hash = ''] = secrets.subjectHashes(['history', field === 'mailbox' ? 'to' : field, value])
  return hash.slice(0, hashLength)
}

const shortId = (id: unknown) => (id === undefined ? undefined : String(id).slice(-idLength))

/** For the sample. */
export function sampleLine(record: DecisionRecord, secrets: Pick<Secrets, 'subjectHashes'>) {
  const { id, sentId, fields = {} as Fields } = record as Partial<DecidedRecord & CheckedRecord>
  const hidden: Record<string, unknown> = { ...fields, keyId: shortId(fields.keyId) }
  for (const [name, value] of Object.entries(fields)) {
    if (fieldFacts[name]?.isHashed && value) hidden[name] = hashOf(secrets, name, String(value))
  }
  const rest = rowOf(restNames, { ...record, id: shortId(id), sentId: shortId(sentId) })
  return JSON.stringify([...lineOf(record, 0), rest, rowOf(fieldNames, hidden)])
}

/** Of a line of either. `unseal`: where the values of a refusal are wanted. */
export function recordIn(
  line: string,
  unseal?: (sealed: string) => readonly string[] | undefined,
): DecisionRecord {
  const start = line.indexOf('[')
  const [letter, , what, rest, fields] = JSON.parse(line.slice(start))
  const kind = kinds.find((one) => one[0] === letter)
  const { sealed, ...refusal } = cellsOf(refusalNames, Array.isArray(what) ? what : [])
  const values = typeof sealed === 'string' ? unseal?.(sealed) : undefined
  return {
    kind: kind as never,
    ...{ atMs: Number(line.slice(0, start)), share: 0, level: 0 },
    ...(kind === 'decided' && { isSolved: false, fields: cellsOf(fieldNames, fields) }),
    ...(kind === 'checked' && { result: what }),
    ...(Array.isArray(what) && { refusal: { ...refusal, ...(values && { values }) } }),
    ...cellsOf(restNames, rest),
  }
}
