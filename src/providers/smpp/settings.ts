import { z } from 'zod'
import { duration } from '../../base/durations.ts'

/** Type of number and numbering plan (5.2.5, 5.2.6), where the operator wants others than the address suggests. */
const numbering = z
  .strictObject({ ton: z.int().min(0).max(6).optional(), npi: z.int().min(0).max(18).optional() })
  .default({})

export const smppSettings = z.strictObject({
  url: z.string().transform((text, context) => {
    const parsed = URL.canParse(text) ? new URL(text) : undefined
    const isKnown =
      parsed && ['smpp:', 'smpps:'].includes(parsed.protocol) && parsed.hostname !== ''
    try {
      if (isKnown) return readUrl(parsed)
    } catch {
      // A % that encodes nothing.
    }
    context.addIssue({ code: 'custom', message: 'not a URL such as smpp://id:password@host:2775' })
    return z.NEVER
  }),
  /** One connection for both ways, or two where the SMSC knows no transceivers. */
  bind: z.enum(['transceiver', 'separate']).default('transceiver'),
  source: numbering,
  destination: numbering,
  /** Whether the SMSC hears how long a message is worth delivering. */
  validity: z.enum(['relative', 'none']).default('relative'),
  systemType: z.string().max(12).default(''),
  /** The sender phones show: a number in E.164, a short code, or up to 11 letters and digits. */
  from: z
    .string()
    .regex(/^(\+?\d{3,15}|[\w .-]{1,11})$/, 'not a number or a name of 1 to 11 letters'),
  /** Who cuts long texts: we do (`segments`), or the SMSC (`payload`). */
  longTexts: z.enum(['segments', 'payload']).default('segments'),
  /** The base in which receipts write message ids, where it is not that of the answers. */
  receiptIds: z.enum(['same', 'hex', 'decimal']).default('same'),
  /** Messages under way at once, unanswered. */
  window: z.int().min(1).max(1_000).default(10),
  /** An idle connection is asked this often whether the SMSC is still there. */
  enquireEvery: duration.default(30_000),
})

export type SmppSettings = z.infer<typeof smppSettings>

function readUrl(url: URL) {
  const isSecure = url.protocol === 'smpps:'
  return {
    isSecure,
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(url.port) || (isSecure ? 3550 : 2775),
    systemId: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
  }
}
