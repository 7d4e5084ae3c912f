import { z } from 'zod'
import { vendorTemplates } from '../vendor-templates.ts'

const approved = z.strictObject({
  /** The name and the language of the approved template, as Meta spells them. */
  name: z
    .string()
    .regex(/^[a-z0-9_]{1,512}$/, 'must be a name of a template, such as verification_code'),
  language: z
    .string()
    .regex(/^[a-z]{2,3}(_[A-Za-z]{2,4}){0,2}$/, 'must be a language of Meta, such as en_US'),
})

export const whatsappSettings = z.strictObject({
  /** The id of the sending number, not the number. */
  phoneNumberId: z
    .string()
    .regex(/^\d{1,32}$/, 'must be the id of the number, which has digits only'),
  accessToken: z.string().min(1),
  /** The secret of the app, with which Meta signs receipts. Without it, receipts are refused. */
  appSecret: z.string().min(1).optional(),
  /** The text that Meta repeats when the address for receipts is entered. */
  verifyToken: z.string().min(1).optional(),
  /** Approved authentication templates, by template and locale of Postern. */
  templates: vendorTemplates(approved),
  endpoint: z.url({ protocol: /^https?$/ }).default('https://graph.facebook.com/v23.0'),
})

export type WhatsappSettings = z.infer<typeof whatsappSettings>
