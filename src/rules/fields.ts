/**
 * The catalogue of fields that rules may use where the product itself asks the limiter. The check of the policy
 * file, the table in docs/policy-file.md, policies in words, support's look-up, the variants for test recipients and the
 * records of decisions read it. A new field is one entry here, at the end, and its value in quota.ts.
 */

interface Field {
  /** In a sentence: "At most 5 per 1h for one recipient". */
  readonly noun: string
  /** Its line in docs/policy-file.md. */
  readonly meaning: string
  /** The calls that have it: only sends know a template, and only login attempts a subject. */
  readonly of: 'sends and checks' | 'sends' | 'attempts'
  /** It is a number to be taken (`permits`), not a part of a key. */
  readonly isNumber?: true
  /** One value stands for one recipient, or for one message to one recipient. */
  readonly isPersonal?: true
  /** Made of the recipient. Rules that use one are not asked for test recipients, who may be sent to all day. */
  readonly isOfRecipient?: true
  /** Support knows it of every recipient of an app. The other fields are known only from a request. */
  readonly isKnown?: true
  /** It identifies a person, or could be counted back to one: records of decisions hold a short keyed hash of it. */
  readonly isHashed?: true
}

/** By name, in the order in which records of decisions hold them. */
export const fields: Readonly<Record<string, Field>> = {
  to: {
    noun: 'one recipient',
    meaning: 'the phone number or mail address',
    of: 'sends and checks',
    isPersonal: true,
    isOfRecipient: true,
    isKnown: true,
    isHashed: true,
  },
  mailbox: {
    noun: 'one mailbox',
    meaning:
      'the address as its provider sees it, without plus-tags and, for Gmail, dots; a phone number itself',
    of: 'sends and checks',
    isPersonal: true,
    isOfRecipient: true,
    isKnown: true,
    isHashed: true,
  },
  ip: {
    noun: 'one IP address',
    meaning:
      "the address of the caller of Postern, see [the person's address](http.md#what-every-call-has); of IPv6 its /64",
    of: 'sends and checks',
    isHashed: true,
  },
  prefix: {
    noun: 'one prefix of numbers or domain of mail',
    meaning: 'a phone number without its last four digits; the domain of a mail address',
    of: 'sends and checks',
    isOfRecipient: true,
    isKnown: true,
    isHashed: true,
  },
  dedupe: {
    noun: 'one message with the same words to the same recipient',
    meaning: 'recipient, template and variables, hashed: the same for the same message',
    of: 'sends',
    isPersonal: true,
    isOfRecipient: true,
    isHashed: true,
  },
  subject: {
    noun: 'one subject',
    meaning: 'the `subject` of a login attempt',
    of: 'attempts',
    isHashed: true,
  },
  channel: {
    noun: 'one channel',
    meaning: '`sms` or `email`',
    of: 'sends and checks',
    isKnown: true,
  },
  app: {
    noun: 'one app',
    meaning: 'the app of the API key',
    of: 'sends and checks',
    isKnown: true,
  },
  scene: {
    noun: 'one scene',
    meaning: 'the scene of a code; empty for notices',
    of: 'sends and checks',
  },
  country: {
    noun: 'one country',
    meaning: 'the country of a phone number, e.g. `CN`; empty for mail',
    of: 'sends and checks',
    isOfRecipient: true,
    isKnown: true,
  },
  template: { noun: 'one template', meaning: 'the template of the message', of: 'sends' },
  price: {
    noun: 'one price',
    meaning: "for `permits` alone: the message's price by `prices`",
    of: 'sends',
    isNumber: true,
    isOfRecipient: true,
  },
  keyId: { noun: 'one API key', meaning: 'the id of the API key', of: 'sends and checks' },
}

/** In the catalogue's order. */
export function fieldsThat(holds: (field: Field) => unknown): readonly string[] {
  return Object.keys(fields).filter((name) => holds(fields[name] as Field))
}

/** The fields of keys of the policies that are asked before a check, and before a send. */
export const checkFields = fieldsThat(({ of, isNumber }) => of === 'sends and checks' && !isNumber)
export const sendFields = fieldsThat(({ of, isNumber }) => of !== 'attempts' && !isNumber)
