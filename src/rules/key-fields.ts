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
  /** A number for `permits`, not a part of a key. */
  readonly isNumber?: true
  /** Each value of the field belongs to one recipient, or to one message to one recipient. */
  readonly isPersonal?: true
  /** Derived from the recipient. Rules with such a field do not apply to test recipients, who may get sends all day. */
  readonly isOfRecipient?: true
  /** Each value of the field belongs to one caller. */
  readonly isOfCaller?: true
  /** Support can derive the value, or all values, from a recipient and an app. Other fields are known only during a request. */
  readonly isKnown?: true
  /** The value is personal, or could be found by trying all values. Records store a short keyed hash of it. */
  readonly isHashed?: true
}

/** The fields by name, in the order in which records of decisions store them. */
export const fields: Readonly<Record<string, Field>> = {
  to: {
    meaning: 'the phone number or mail address',
    of: 'sends and checks',
    isPersonal: true,
    isOfRecipient: true,
    isKnown: true,
    isHashed: true,
  },
  mailbox: {
    meaning:
      'the mail address without plus-tags and, for Gmail, without dots; a phone number unchanged',
    of: 'sends and checks',
    isPersonal: true,
    isOfRecipient: true,
    isKnown: true,
    isHashed: true,
  },
  ip: {
    meaning:
      "the address of the caller of Postern, see [the person's address](http.md#what-every-call-has); an IPv6 address counts as its /64",
    of: 'sends and checks',
    isOfCaller: true,
    isHashed: true,
  },
  prefix: {
    meaning: 'a phone number without its last four digits; the domain of a mail address',
    of: 'sends and checks',
    isOfRecipient: true,
    isKnown: true,
    isHashed: true,
  },
  dedupe: {
    meaning: 'a hash of channel, recipient, template and variables',
    of: 'sends',
    isPersonal: true,
    isOfRecipient: true,
    isHashed: true,
  },
  subject: {
    meaning: 'the `subject` of a login attempt',
    of: 'attempts',
    isHashed: true,
  },
  channel: {
    meaning: '`sms`, `email` or another channel',
    of: 'sends and checks',
    isKnown: true,
  },
  app: {
    meaning: 'the app of the API key',
    of: 'sends and checks',
    isKnown: true,
  },
  scene: {
    meaning: 'the scene of a code; empty for notices',
    of: 'sends and checks',
  },
  country: {
    meaning: 'the country of a phone number, e.g. `CN`; empty for mail',
    of: 'sends and checks',
    isOfRecipient: true,
    isKnown: true,
  },
  template: {
    meaning: 'the template of the message',
    of: 'sends',
  },
  price: {
    meaning: 'only for `permits`: the price of the message by `prices`',
    of: 'sends',
    isNumber: true,
    isOfRecipient: true,
  },
  keyId: {
    meaning: 'the id of the API key',
    of: 'sends and checks',
    isOfCaller: true,
  },
  block: {
    meaning:
      'a phone number without its last four digits; the mailbox of a mail address, whose domain is shared by strangers',
    of: 'sends and checks',
    isOfRecipient: true,
    isKnown: true,
    isHashed: true,
  },
  ipWide: {
    meaning: 'like `{ip}`, but an IPv6 address counts as its /48, which one customer may have',
    of: 'sends and checks',
    isOfCaller: true,
    isHashed: true,
  },
  lane: {
    meaning:
      "`known` for a browser in which a right code of this recipient was typed, see [the owner's lane](abuse.md#the-owners-lane); else `stranger`",
    of: 'sends and checks',
    isKnown: true,
  },
}

/** The names of all fields that match, in the order of the catalogue. */
export function fieldsThat(matches: (field: Field) => unknown): readonly string[] {
  return Object.keys(fields).filter((name) => matches(fields[name] as Field))
}

/** The fields that keys may use in policies on checks, and in policies on sends. */
export const checkFields = fieldsThat(({ of, isNumber }) => of === 'sends and checks' && !isNumber)
export const sendFields = fieldsThat(({ of, isNumber }) => of !== 'attempts' && !isNumber)
