import { z } from 'zod'
import { duration } from '../../base/durations.ts'

/**
 * Configured faults. Each rule names recipients and the fault of their messages. The first rule that fits decides, so a
 * test controls one recipient without others.
 */
const receiptSettings = z.strictObject({
  outcome: z.enum(['delivered', 'failed']).default('delivered'),
  /** Late receipts: time after the message was accepted. */
  delay: duration.default(0),
  /** Double receipts: number of copies of each receipt. */
  copies: z.int().min(0).max(10).default(1),
})

const faultResults = [
  'rejected',
  'invalid_recipient',
  'postponed',
  'throttled',
  'unavailable',
  /** The message is accepted, but the answer is lost: `unknown`. */
  'lost_answer',
  /** No message is accepted, and no answer is sent before the time limit of the attempt. */
  'hang',
] as const

const faultRule = z.strictObject({
  /** Exact recipients, prefixes (`+1500*`) or suffixes (`*@slow.test`). Without it: all recipients. */
  to: z
    .union([z.string(), z.array(z.string())])
    .transform((to) => [to].flat())
    .optional(),
  /** The share of messages with this fault, 0 to 1. */
  share: z.number().min(0).max(1).default(1),
  delay: duration.default(0),
  result: z.enum(faultResults).optional(),
  /** With `throttled`: the pause that the provider asks for. */
  retryAfter: duration.default(1_000),
  receipts: receiptSettings.optional(),
})

export type FaultRule = z.infer<typeof faultRule>
export type ReceiptSettings = z.infer<typeof receiptSettings>

export const sandboxSettings = z.strictObject({
  faults: z.array(faultRule).default([]),
  /** Receipts for every accepted message; none by default. */
  receipts: receiptSettings.optional(),
  /** Whether the outcome of a message with a lost answer can be queried. */
  query: z.boolean().default(true),
  /** Whether `switchOff` of the outbox can simulate an outage in running processes. */
  switchable: z.boolean().default(false),
})

export type SandboxSettings = z.infer<typeof sandboxSettings>
