/**
 * The catalogue of fields for the keys of rules; docs/policy-file.md has their meanings. Used by the check of the policy file,
 * support's look-up, the policies for test recipients, and the records of decisions. A new field needs one entry at the
 * end of this list, its value in quota.ts, and its noun in the files of src/i18n (`rules.nouns`).
 */
import type { Policies, Rule } from '../limiter/index.ts'

interface Field {
  /** The calls with this field: only sends have a template, and only login attempts a subject. */
  readonly of: 'sends and checks' | 'sends' | 'attempts'
  readonly is?: readonly Trait[]
}

type Trait =
  /** For `permits`, not a part of a key. */
  | 'number'
  /** Each value belongs to one recipient, or to one message to one recipient. */
  | 'personal'
  /** Derived from the recipient. Rules with such a field do not apply to test recipients, who may get sends all day. */
  | 'ofRecipient'
  /** Each value belongs to one caller. */
  | 'ofCaller'
  /** Support can derive the value, or all values, from a recipient and an app. Other fields are known only during a request. */
  | 'known'
  /** The value is personal, or could be found by trying all values. Records store a short keyed hash of it. */
  | 'hashed'

/** The fields by name, in the order in which records of decisions store them. */
export const fields: Readonly<Record<string, Field>> = {
  to: { of: 'sends and checks', is: ['personal', 'ofRecipient', 'known', 'hashed'] },
  mailbox: { of: 'sends and checks', is: ['personal', 'ofRecipient', 'known', 'hashed'] },
  ip: { of: 'sends and checks', is: ['ofCaller', 'hashed'] },
  prefix: { of: 'sends and checks', is: ['ofRecipient', 'known', 'hashed'] },
  dedupe: { of: 'sends', is: ['personal', 'ofRecipient', 'hashed'] },
  subject: { of: 'attempts', is: ['hashed'] },
  channel: { of: 'sends and checks', is: ['known'] },
  app: { of: 'sends and checks', is: ['known'] },
  scene: { of: 'sends and checks' },
  country: { of: 'sends and checks', is: ['ofRecipient', 'known'] },
  template: { of: 'sends' },
  price: { of: 'sends', is: ['number', 'ofRecipient'] },
  keyId: { of: 'sends and checks', is: ['ofCaller'] },
  block: { of: 'sends and checks', is: ['ofRecipient', 'known', 'hashed'] },
  ipWide: { of: 'sends and checks', is: ['ofCaller', 'hashed'] },
  lane: { of: 'sends and checks', is: ['known'] },
}

/** The fields with this trait, in the order of the catalogue. */
export const fieldsThatAre = (trait: Trait): readonly string[] =>
  namesOf(({ is = [] }) => is.includes(trait))

const namesOf = (matches: (field: Field) => boolean): readonly string[] =>
  Object.keys(fields).filter((name) => matches(fields[name] as Field))

const isPartOfKeys = ({ is = [] }: Field) => !is.includes('number')

/** The fields that keys may use in policies on checks, and in policies on sends. */
export const checkFields = namesOf(
  (field) => field.of === 'sends and checks' && isPartOfKeys(field),
)
export const sendFields = namesOf((field) => field.of !== 'attempts' && isPartOfKeys(field))

export function findRule(policies: Policies, policy: string, name: string): Rule | undefined {
  return policies[policy]?.find((rule) => rule.name === name)
}

const personalFields = fieldsThatAre('personal')

/** True if a count of the rule belongs to one recipient, or to the few addresses of one mailbox. */
export const namesRecipient = ({ fields }: Rule) =>
  personalFields.some((field) => fields.includes(field))

const knownFields = fieldsThatAre('known')

/** Key fields of a rule that are known only during a request. */
export const requestFields = ({ fields }: Rule) =>
  fields.filter((field) => !knownFields.includes(field))

/** The values of `requestFields`, for a rule whose key contains the recipient. Undefined if there are none to store. */
export function requestValues(
  rule: Rule,
  fields: Readonly<Record<string, string | number>>,
): string[] | undefined {
  const ofRequest = requestFields(rule)
  if (ofRequest.length === 0 || !namesRecipient(rule)) return undefined
  return ofRequest.map((field) => String(fields[field] ?? ''))
}
