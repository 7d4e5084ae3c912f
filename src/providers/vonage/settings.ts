import { z } from 'zod'
import { senderByCountry } from '../sender.ts'

export const vonageSettings = z.strictObject({
  apiKey: z.string().min(1),
  apiSecret: z.string().min(1),
  /** A number, or a name of up to 11 letters and digits. */
  from: senderByCountry(
    z
      .string()
      .regex(
        /^(\+?\d{3,15}|[A-Za-z0-9]{1,11})$/,
        'must be a number, or up to 11 letters and digits',
      ),
  ),
  /** Give Vonage a receipt address with this value as `?token=`. Without it, receipts are refused. */
  receiptToken: z.string().min(16).optional(),
  endpoint: z.url({ protocol: /^https?$/ }).default('https://rest.nexmo.com'),
})

export type VonageSettings = z.infer<typeof vonageSettings>
