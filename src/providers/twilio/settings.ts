import { z } from 'zod'
import type { ByCountry } from '../../base/by-country.ts'
import { senderByCountry } from '../sender.ts'

/** Twilio refuses every message from another sender. */
function isSender(text: string): boolean {
  if (/^\+?\d{3,15}$/.test(text) || /^[a-z]+:\S+$/.test(text)) return true
  return /^[\w &+-]{1,11}$/.test(text) && /[A-Za-z]/.test(text) && text === text.trim()
}

/** A call shows a number. */
const areNumbers = (from: ByCountry | undefined) =>
  from !== undefined &&
  [typeof from === 'string' ? from : Object.values(from)]
    .flat()
    .every((one) => one === false || /^\+[1-9]\d{6,14}$/.test(one))

export const twilioSettings = z
  .strictObject({
    accountSid: z.string().regex(/^AC[0-9a-fA-F]{32}$/, 'must be AC and 32 hexadecimal digits'),
    authToken: z.string().min(1),
    channels: z
      .array(z.enum(['sms', 'voice']))
      .min(1)
      .default(['sms']),
    /** A number in E.164, a short code, up to 11 letters and digits, or the address of another channel. */
    from: senderByCountry(
      z.string().refine(isSender, 'must be a number, or 1 to 11 letters, digits and spaces'),
    ).optional(),
    messagingServiceSid: z
      .string()
      .regex(/^MG[0-9a-fA-F]{32}$/, 'must be MG and 32 hexadecimal digits')
      .optional(),
    /** The public address for receipts, exactly as Twilio requests it. */
    statusCallback: z.url({ protocol: /^https?$/ }).optional(),
    endpoint: z.url({ protocol: /^https?$/ }).default('https://api.twilio.com'),
  })
  .refine(
    ({ from, messagingServiceSid }) => (from === undefined) !== (messagingServiceSid === undefined),
    {
      message: 'needs one of from and messagingServiceSid',
    },
  )
  .refine(({ channels, from }) => !channels.includes('voice') || areNumbers(from), {
    message: 'calls need a number, such as "+15005550006"',
    path: ['from'],
  })

export type TwilioSettings = z.infer<typeof twilioSettings>

/** The address that Twilio calls with receipts of this notice. */
export function callbackUrl(
  settings: TwilioSettings,
  noticeId: string | undefined,
): string | undefined {
  const { statusCallback } = settings
  if (statusCallback === undefined || noticeId === undefined) return statusCallback
  // A fragment has settings of Twilio, such as the number of its repeats.
  const [address = '', ...fragment] = statusCallback.split(/(?=#)/)
  const separator = address.includes('?') ? '&' : '?'
  return `${address}${separator}noticeId=${encodeURIComponent(noticeId)}${fragment.join('')}`
}
