/**
 * The format of a recorded decision, for the recorder and its readers. It is enough for support to explain a refusal, and
 * for a replay to decide the request again. It contains no readable personal data. Values that identify a person are short
 * keyed hashes, so that equal values stay equal. Values that a lock counts beside its recipient are sealed.
 *
 * A record is one line: its time and a JSON array of kind, recipient and result or refusal. The ring of a recipient has
 * only these. In the sample, the other members and the fields follow, in the order of their catalogue. A 0 or a missing
 * end of the array means "no value".
 */
import type { Channel } from '../base/channel.ts'
import { parseJson } from '../base/json.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { Policies } from '../limiter/index.ts'
import { fields as fieldFacts } from '../rules/key-fields.ts'
import { isCheckPolicy } from '../rules/policies.ts'
import type { Fields, OnDecided } from '../rules/quota.ts'
import { findRule, requestValues } from '../rules/recipient-rules.ts'

/** A recipient of one app. Each app has its own decisions. */
export interface Recipient {
  app: string
  channel: Channel
  to: string
}

export interface RecordedRefusal {
  /** The policy that the rule is declared in. */
  policy: string
  rule: string
  window: string
  retryAfterMs: number
  /** The rule only required a challenge, which the caller had not solved. */
  challenge?: true
  /** The lock began with this wrong code, which used up the limit. The code was compared, and nothing was refused yet. */
  lockBegan?: true
  /** A check was refused; otherwise a send. */
  isOfCheck?: true | undefined
  /** Extra key fields of a rule whose key contains the recipient. Only rings have them. */
  values?: readonly string[] | undefined
}

export const checkResults = ['passed', 'mismatch', 'gone', 'refused'] as const
export type CheckResult = (typeof checkResults)[number]

interface Recorded {
  atMs: number
  /** At that time 1 of 2^share recipients was sampled: those whose level is `share` or higher. */
  share: number
  /** The level of the recipient. */
  level: number
}

export interface DecidedRecord extends Recorded {
  kind: 'decided'
  /** Number of equal decisions within a turn of the sample. Only refusals have more than 1. */
  times: number
  /** The policy of the limit check. */
  policy: string
  /** The id by which its uses are given back. */
  id: string
  /** Absent if the request was admitted. */
  refusal?: RecordedRefusal
  /** The caller has solved a challenge, so rules that require a challenge admit the request. */
  isSolved: boolean
  /** The fields of the limit check. In a written record, hashes replace values that identify a person. */
  fields: Fields
}

/** The check whose decision has this `id`. `sentId` is the notice whose code passed. */
export interface CheckedRecord extends Recorded {
  kind: 'checked'
  result: CheckResult
  id: string
  sentId?: string | undefined
}

export type DecisionRecord =
  | DecidedRecord
  | CheckedRecord
  /** The request failed, and its uses were given back. */
  | (Recorded & { kind: 'released'; id: string })
  /** Not a request: a new share applies from now on. */
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
  const { challenge, newLock } = decision
  const { rule: name, window, retryAfterMs } = newLock ?? decision
  const rule = findRule(policies, policy, name)
  record.refusal = {
    ...{ policy: rule?.policy ?? policy, rule: name, window, retryAfterMs },
    ...(challenge && { challenge: true }),
    ...(newLock && { lockBegan: true }),
    ...(isCheckPolicy(policy) && { isOfCheck: true }),
    values: rule && requestValues(rule, fields),
  }
  return record
}

const ringNameLength = 2
const whoLength = 10
const hashLength = 8
const idLength = 12

export const sampleKey = (keyPrefix: string) => `${keyPrefix}history:sample`

/**
 * For each secret in use, the current secret first: the ring of a recipient (one of 4,096), `who` as the mark of its
 * lines there, and the key for checks without a code.
 */
export const placesOf = (secrets: Secrets, keyPrefix: string, { app, channel, to }: Recipient) =>
  secrets.subjectHashes(['history', app, channel, to]).map((hash) => ({
    ring: `${keyPrefix}history:{${hash.slice(0, ringNameLength)}}`,
    goneKey: `${keyPrefix}gone:${hash}`,
    who: hash.slice(ringNameLength, ringNameLength + whoLength),
  }))

/** A line contains only the first letter of its kind. */
const kinds = ['decided', 'checked', 'released', 'share'] as const
const refusalNames = 'policy rule window retryAfterMs challenge lockBegan sealed isOfCheck'.split(
  ' ',
)
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

export function ringLine(record: DecidedRecord | CheckedRecord, who: string, secrets: Secrets) {
  const values = record.kind === 'decided' ? record.refusal?.values : undefined
  const sealed = values && secrets.sealText(JSON.stringify(values), who)
  return JSON.stringify(lineOf(record, who, sealed))
}

/** The hash of a field's value in the sample. For a phone, the field `mailbox` is the phone itself, and gets the same hash. */
export function hashOf(secrets: Pick<Secrets, 'subjectHashes'>, field: string, value: string) {
  const [hash = ''] = secrets.subjectHashes(['history', field === 'mailbox' ? 'to' : field, value])
  return hash.slice(0, hashLength)
}

const shortId = (id: unknown) => (id === undefined ? undefined : String(id).slice(-idLength))

export function sampleLine(record: DecisionRecord, secrets: Pick<Secrets, 'subjectHashes'>) {
  const { id, sentId, fields = {} as Fields } = record as Partial<DecidedRecord & CheckedRecord>
  const hidden: Record<string, unknown> = { ...fields, keyId: shortId(fields.keyId) }
  for (const [name, value] of Object.entries(fields)) {
    if (fieldFacts[name]?.isHashed && value) hidden[name] = hashOf(secrets, name, String(value))
  }
  const rest = rowOf(restNames, { ...record, id: shortId(id), sentId: shortId(sentId) })
  return JSON.stringify([...lineOf(record, 0), rest, rowOf(fieldNames, hidden)])
}

/** Reads a line of a ring or of the sample. `unseal` is needed for the values of a refusal. */
export function recordIn(
  line: string,
  unseal: (sealed: string) => string | undefined = () => undefined,
): DecisionRecord {
  const start = line.indexOf('[')
  const [letter, , what, rest, fields] = JSON.parse(line.slice(start))
  const kind = kinds.find((one) => one[0] === letter)
  const { sealed, ...refusal } = cellsOf(refusalNames, Array.isArray(what) ? what : [])
  const values = sealed === undefined ? undefined : parseJson(unseal(String(sealed)) ?? '')
  return {
    kind: kind as never,
    ...{ atMs: Number(line.slice(0, start)), share: 0, level: 0 },
    ...(kind === 'decided' && { isSolved: false, fields: cellsOf(fieldNames, fields) }),
    ...(kind === 'checked' && { result: what }),
    ...(Array.isArray(what) && { refusal: { ...refusal, values } }),
    ...cellsOf(restNames, rest),
  }
}
