import { z } from 'zod'
import { senderByCountry } from '../sender.ts'
import { vendorTemplates } from '../vendor-templates.ts'

const template = z.union([
  /** A text alone: a code is sent as `code`, and a notice with its variables under their own names. */
  z.string().min(1),
  z.strictObject({
    id: z.string().min(1),
    /** Postern's variables by the names of Aliyun's variables. */
    params: z.record(z.string().min(1), z.string().min(1)).optional(),
    signName: z.string().min(1).optional(),
  }),
])

export const aliyunSettings = z.strictObject({
  accessKeyId: z.string().min(1),
  accessKeySecret: z.string().min(1),
  signName: senderByCountry(z.string().min(1)),
  templates: vendorTemplates(template),
  /** Give Aliyun a receipt address with this value as `?token=`. Without it, receipts are refused. */
  receiptToken: z.string().min(16).optional(),
  endpoint: z.url({ protocol: /^https?$/ }).default('https://dysmsapi.aliyuncs.com'),
})

export type AliyunSettings = z.infer<typeof aliyunSettings>
