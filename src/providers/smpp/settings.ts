import { z } from 'zod'
import { duration } from '../../base/durations.ts'
import { senderByCountry } from '../sender.ts'
import { alphabets } from './text.ts'

/** Type of number and numbering plan (5.2.5, 5.2.6), if the carrier needs other values than the address suggests. */
const numbering = z
  .strictObject({ ton: z.int().min(0).max(6).optional(), npi: z.int().min(0).max(18).optional() })
  .default({})

export const smppSettings = z.strictObject({
  url: z.string().transform((text, context) => {
    try {
      return readUrl(text)
    } catch {
      context.addIssue('must be a URL such as smpp://id:password@host:2775')
      return z.NEVER
    }
  }),
  /** One connection for both directions, or two if the SMSC supports no transceivers. */
  bind: z.enum(['transceiver', 'separate']).default('transceiver'),
  source: numbering,
  destination: numbering,
  /** Whether messages have a validity period. */
  validity: z.enum(['relative', 'none']).default('relative'),
  systemType: z.string().max(12).default(''),
  /** The sender shown by phones: a number in E.164, a short code, or up to 11 letters and digits. */
  from: senderByCountry(
    z
      .string()
      .regex(/^(\+?\d{3,15}|[\w .-]{1,11})$/, 'must be a number, or a name of 1 to 11 letters'),
  ),
  /** The alphabet that the SMSC reads with data coding 0. */
  alphabet: z.enum(alphabets).default('gsm'),
  /** Whether Postern (`segments`) or the SMSC (`payload`) cuts long texts. */
  longTexts: z.enum(['segments', 'payload']).default('segments'),
  /** The base of message ids in receipts, if it differs from the base in answers to sends. */
  receiptIds: z.enum(['same', 'hex', 'decimal']).default('same'),
  /** Largest number of messages without an answer. */
  window: z.int().min(1).max(1_000).default(10),
  /** Interval of the checks that an idle connection still works. */
  enquireEvery: duration.default(30_000),
})

export type SmppSettings = z.infer<typeof smppSettings>

/** Throws for another text, also for a % without two hexadecimal digits. */
function readUrl(text: string) {
  const url = new URL(text)
  const isSecure = url.protocol === 'smpps:'
  if (!(isSecure || url.protocol === 'smpp:') || url.hostname === '') throw new TypeError()
  return {
    isSecure,
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(url.port) || (isSecure ? 3550 : 2775),
    systemId: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
  }
}
