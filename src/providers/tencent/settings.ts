import { z } from 'zod'
import { senderByCountry } from '../sender.ts'
import { vendorTemplates } from '../vendor-templates.ts'

const template = z.union([
  /** A text alone: the template has no variables. */
  z.string().min(1),
  z.strictObject({
    id: z.string().min(1),
    /** Variables of Postern in the order of {1}, {2}, … of the template. */
    params: z.array(z.string().min(1)).default([]),
    signName: z.string().min(1).optional(),
  }),
])

export const tencentSettings = z.strictObject({
  secretId: z.string().min(1),
  secretKey: z.string().min(1),
  sdkAppId: z.string().min(1),
  /** Required for mainland China. */
  signName: senderByCountry(z.string().min(1)).optional(),
  /** For other regions, if a sender id is registered there. */
  senderId: z.string().min(1).optional(),
  region: z.string().min(1).default('ap-guangzhou'),
  templates: vendorTemplates(template),
  /** Give Tencent a receipt address with this value as `?token=`. Without it, receipts are refused. */
  receiptToken: z.string().min(16).optional(),
  endpoint: z.url({ protocol: /^https?$/ }).default('https://sms.tencentcloudapi.com'),
})

export type TencentSettings = z.infer<typeof tencentSettings>
