/** The frame of the policy file: its sections, defaults and allowed values. */
import { domainToASCII } from 'node:url'
import { z } from 'zod'
import { type Channel, channels } from '../base/channel.ts'
import { duration } from '../base/durations.ts'
import { eventTypes } from '../base/event-types.ts'
import { shortName } from '../base/names.ts'
import { numberTypes } from '../base/number-types.ts'
import { isUsableSecret } from '../crypto/standard-webhooks.ts'
import { registrations } from '../sms-rules/schema.ts'
import { links, suppress, workflows } from './section-schemas.ts'

export type ProviderEntry = z.infer<typeof providerEntry>

const country = z.string().regex(/^[A-Z]{2}$/, 'must be a country code of two capitals, e.g. CN')

const oneOrMany = z
  .union([z.string(), z.array(z.string()).min(1)])
  .transform((value) => (typeof value === 'string' ? [value] : value))

/** Names to try in order, or names with weights. A mixture would be unclear. */
const use = z
  .union([
    z.array(z.string().transform((provider) => ({ provider }))).min(1),
    z
      .array(z.strictObject({ provider: z.string(), weight: z.int().min(0).max(1_000) }))
      .min(1)
      .refine(
        (list) => list.some(({ weight }) => weight > 0),
        'at least one weight must be above 0',
      ),
  ])
  .transform((list): { provider: string; weight?: number }[] => list)

const routeLists = () =>
  z.strictObject(
    Object.fromEntries(channels.map((channel) => [channel, z.array(route).default([])])) as Record<
      Channel,
      z.ZodDefault<z.ZodArray<typeof route>>
    >,
  )

export const route = z.strictObject({
  match: z
    .strictObject({
      country: oneOrMany.optional(),
      template: oneOrMany.optional(),
      app: oneOrMany.optional(),
    })
    .default({}),
  use,
})

/** A receiver of events. Each event goes to the first receiver that matches its app and type. */
const eventReceiver = z.strictObject({
  url: z.url({ protocol: /^https?$/ }),
  secret: z.string().refine(isUsableSecret, 'must be whsec_ and base64, or at least 16 characters'),
  /** Every type if absent. */
  types: z.array(z.enum(eventTypes)).min(1).optional(),
  /** Every app if absent. */
  app: oneOrMany.optional(),
})

export const providerEntry = z
  .looseObject({
    kind: z.string(),
    /** Limit on calls by all workers together. */
    pace: z.string().optional(),
    /** The provider's limits per recipient. */
    quotas: oneOrMany.optional(),
    /** Takes the provider out of all routes. */
    disabled: z.boolean().default(false),
  })
  // The provider kind checks the other members of its section.
  .transform(({ kind, pace, quotas, disabled, ...settings }) => ({
    ...{ kind, pace, quotas, disabled },
    settings,
  }))

const providers = z.record(shortName, providerEntry)

export const templatesFolder = z.string().default('./templates')

/** A domain, spelled as in normalised recipients. */
const domainName = z
  .string()
  .transform((text) => domainToASCII(text))
  .refine(
    (text) => /^([a-z0-9-]{1,63}\.)+[a-z0-9-]{2,63}$/.test(text),
    'must be a domain, e.g. tempmail.test',
  )

const vendorChallenge = <Kind extends string>(kind: Kind) =>
  z.strictObject({
    kind: z.literal(kind),
    siteKey: z.string().min(1),
    secret: z.string().min(1),
    /** Another endpoint, for tests and proxies. */
    url: z.url({ protocol: /^https?$/ }).optional(),
  })

const challenge = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('altcha'),
    /** The average number of keys that a caller derives. */
    tries: z.int().min(1).max(1_000_000).default(3_000),
  }),
  vendorChallenge('turnstile'),
  vendorChallenge('hcaptcha'),
])

export const codeLength = z.int().min(4).max(10).default(4)

export const testRecipient = z.strictObject({
  to: z.string().max(320),
  code: z.string().regex(/^[0-9]{4,10}$/, 'must be 4 to 10 digits in quotes'),
})

const thousandths = z.int().min(1).max(1_000_000)

export const policyFileSchema = z.strictObject({
  code: z
    .strictObject({
      length: codeLength,
      /** Callers with secret keys may bring the codes that are sent. */
      own: z.boolean().default(false),
      ttl: duration.default(300_000),
      triesPerCode: z.int().min(1).max(10).default(3),
    })
    .prefault({}),
  notice: z.strictObject({ ttl: duration.default(86_400_000) }).prefault({}),
  recipients: z
    .strictObject({
      /** For numbers without a country code. */
      defaultCountry: country.optional(),
      /** Countries that may get messages; all if absent. */
      countries: z.array(country).min(1).optional(),
      /** Number types that get SMS; a default list if absent. */
      types: z.array(z.enum(numberTypes)).min(1).optional(),
      /** Beginnings of numbers that the numbering plans do not know yet. */
      allow: z
        .array(
          z
            .string()
            .regex(/^\+[1-9][0-9]{1,13}$/, 'must be the beginning of a number, e.g. "+1861"'),
        )
        .default([]),
      /** Numbers and addresses that get no messages, and files with one number or address per line. */
      refuse: z
        .preprocess((value) => (typeof value === 'string' ? [value] : value), z.array(z.string()))
        .default([]),
      /** How long a recipient gets nothing after a report about it. `false`: such reports have no effect. */
      suppress,
      /** Countries whose SMS leave out the line of WebOTP. */
      withoutWebOtp: z.array(country).default([]),
      mail: z
        .strictObject({
          /** Domains that get no mail, with all their subdomains. */
          refuse: z.array(domainName).max(100_000).default([]),
          /** Refuses a send to a domain that accepts no mail. */
          checkMx: z.boolean().default(false),
        })
        .prefault({}),
    })
    .prefault({}),
  /** Extra rights of publishable keys. */
  browser: z
    .strictObject({
      templates: z.array(z.string()).default(['captcha']),
      workflows: z.array(z.string()).default([]),
      /** The header `traceparent` of pages is trusted, as the header of servers is. */
      traces: z.boolean().default(false),
      /** Checked together with captcha's rules, for publishable keys only. */
      rules: z.array(z.unknown()).default([]),
      /** Checked together with check's rules, for publishable keys only. Checked alone if no live code exists. */
      checkRules: z.array(z.unknown()).default([]),
    })
    .prefault({}),
  workflows,
  challenge: challenge.prefault({ kind: 'altcha' }),
  /** Thousandths of the operator's currency per message, by country, for `{price}`. */
  prices: z
    .object({ default: thousandths, email: thousandths.default(1) })
    .catchall(thousandths)
    .optional(),
  /** Recipients with fixed codes, to which nothing is sent. */
  testing: z
    .strictObject({
      recipients: z.array(testRecipient).max(1_000).default([]),
      /** Their last day, in UTC. */
      until: z.iso.date().optional(),
    })
    .prefault({}),
  policies: z.record(z.string(), z.unknown()),
  templates: templatesFolder,
  links,
  /** Registrations with carriers, by provider and country. */
  senders: z.record(z.string(), z.record(country, registrations)).default({}),
  /** Modules with provider kinds or routes: paths from the file, or names of packages. */
  plugins: z.array(z.string().min(1)).default([]),
  /** Settings of the façades for other people's clients. */
  compat: z.record(z.string(), z.unknown()).default({}),
  providers,
  routes: routeLists(),
  events: z.union([eventReceiver.transform((one) => [one]), z.array(eventReceiver)]).default([]),
  retention: z
    .strictObject({
      /** After this time a notice stores no recipient, only its hash. */
      recipient: duration.default(30 * 86_400_000),
      /** After this time a notice is deleted, together with its whole week. */
      rows: duration.default(180 * 86_400_000),
      /** After this time decisions of the limits and results of checks are deleted, together with their whole week. */
      decisions: duration.default(7 * 86_400_000),
    })
    .prefault({}),
  delivery: z
    .strictObject({
      /** Attempts per notice. A pause that a provider asks for is not counted. */
      tries: z.int().min(1).max(20).default(5),
      /** Repeats of a notice after an attempt with an unknown outcome (a captcha: one). */
      unknownRetries: z.int().min(0).max(10).default(1),
      /** A stop waits for the calls under way, and no longer than a supervisor does. */
      timeout: duration.refine((ms) => ms <= 15_000, 'must be at most 15s').default(5_000),
      concurrency: z.int().min(1).max(1_000).default(100),
    })
    .prefault({}),
})

export type Route = z.infer<typeof route>

type Parsed = z.infer<typeof policyFileSchema>

export interface PolicyFile extends Omit<Parsed, 'templates' | 'recipients'> {
  /** `refuse`: numbers and mailboxes, of the list and of its files. */
  recipients: Omit<Parsed['recipients'], 'refuse'> & { readonly refuse: ReadonlySet<string> }
  /** An absolute path. */
  templatesFolder: string
}
