import { z } from 'zod'
import { duration } from '../../base/durations.ts'

/**
 * Misfortune by configuration. Each rule names recipients and what happens to their messages; the
 * first rule that fits decides, so a test steers one recipient without touching the others.
 */
const receiptSettings = z.strictObject({
  outcome: z.enum(['delivered', 'failed']).default('delivered'),
  /** Late receipts: how long after the message was taken. */
  delay: duration.default(0),
  /** Double receipts: how often each one comes. */
  copies: z.int().min(0).max(10).default(1),
})

const faultResults = [
  'rejected',
  'invalid_recipient',
  'postponed',
  'throttled',
  'unavailable',
  /** The message is taken, but the answer is lost: `unknown`. */
  'lost_answer',
  /** Nothing is taken and nothing is said until the attempt's time is up. */
  'hang',
] as const

const faultRule = z.strictObject({
  /** Exact recipients, or beginnings (`+1500*`), or ends (`*@slow.test`). Without it: all. */
  to: z
    .union([z.string(), z.array(z.string())])
    .transform((to) => [to].flat())
    .optional(),
  /** Only for this share of the messages, 0 to 1. */
  share: z.number().min(0).max(1).default(1),
  delay: duration.default(0),
  result: z.enum(faultResults).optional(),
  /** With `throttled`: how long the provider asks us to stay away. */
  retryAfter: duration.default(1_000),
  receipts: receiptSettings.optional(),
})

export type FaultRule = z.infer<typeof faultRule>
export type ReceiptSettings = z.infer<typeof receiptSettings>

export const sandboxSettings = z.strictObject({
  faults: z.array(faultRule).default([]),
  /** Receipts for every message taken; none by default. */
  receipts: receiptSettings.optional(),
  /** Whether it can be asked what became of a message whose answer was lost. */
  query: z.boolean().default(true),
  /** Whether a running process may be told that its far end is away: `switchOff` of the outbox. */
  switchable: z.boolean().default(false),
})

export type SandboxSettings = z.infer<typeof sandboxSettings>
