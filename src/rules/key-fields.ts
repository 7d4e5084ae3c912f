/**
 * The catalogue of fields for the keys of rules. Used by the check of the policy file, the table in
 * docs/policy-file.md, support's look-up, the policies for test recipients, and the records of decisions. A new field needs
 * one entry at the end of this list, its value in quota.ts, and its noun in the files of src/i18n (`rules.nouns`).
 */

interface Field {
  /** Its line in docs/policy-file.md. */
  readonly meaning: string
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
  to: {
    meaning: 'the phone number or mail address',
    of: 'sends and checks',
    is: ['personal', 'ofRecipient', 'known', 'hashed'],
  },
  mailbox: {
    meaning:
      'the mail address without plus-tags and, for Gmail, without dots; a phone number unchanged',
    of: 'sends and checks',
    is: ['personal', 'ofRecipient', 'known', 'hashed'],
  },
  ip: {
    meaning:
      "the address of the caller of Postern, see [the person's address](http.md#what-every-call-has); an IPv6 address counts as its /64",
    of: 'sends and checks',
    is: ['ofCaller', 'hashed'],
  },
  prefix: {
    meaning: 'a phone number without its last four digits; the domain of a mail address',
    of: 'sends and checks',
    is: ['ofRecipient', 'known', 'hashed'],
  },
  dedupe: {
    meaning: 'a hash of channel, recipient, template and variables',
    of: 'sends',
    is: ['personal', 'ofRecipient', 'hashed'],
  },
  subject: {
    meaning: 'the `subject` of a login attempt',
    of: 'attempts',
    is: ['hashed'],
  },
  channel: {
    meaning: '`sms`, `email` or another channel',
    of: 'sends and checks',
    is: ['known'],
  },
  app: {
    meaning: 'the app of the API key',
    of: 'sends and checks',
    is: ['known'],
  },
  scene: {
    meaning: 'the scene of a code; empty for notices',
    of: 'sends and checks',
  },
  country: {
    meaning: 'the country of a phone number, e.g. `CN`; empty for mail',
    of: 'sends and checks',
    is: ['ofRecipient', 'known'],
  },
  template: {
    meaning: 'the template of the message',
    of: 'sends',
  },
  price: {
    meaning: 'only for `permits`: the price of the message by `prices`',
    of: 'sends',
    is: ['number', 'ofRecipient'],
  },
  keyId: {
    meaning: 'the id of the API key',
    of: 'sends and checks',
    is: ['ofCaller'],
  },
  block: {
    meaning:
      'a phone number without its last four digits; the mailbox of a mail address, whose domain is shared by strangers',
    of: 'sends and checks',
    is: ['ofRecipient', 'known', 'hashed'],
  },
  ipWide: {
    meaning: 'like `{ip}`, but an IPv6 address counts as its /48, which one customer may have',
    of: 'sends and checks',
    is: ['ofCaller', 'hashed'],
  },
  lane: {
    meaning:
      "`known` for a browser in which a right code of this recipient was typed, see [the owner's lane](abuse.md#the-owners-lane); else `stranger`",
    of: 'sends and checks',
    is: ['known'],
  },
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
