import { z } from 'zod'
import { vendorTemplates } from '../vendor-templates.ts'

const template = z.union([
  /** A text without variables. */
  z.string().min(1),
  z.strictObject({
    id: z.string().min(1),
    /** Our variables in the order of their {1}, {2}, … */
    params: z.array(z.string().min(1)).default([]),
    signName: z.string().min(1).optional(),
  }),
])

export const tencentSettings = z.strictObject({
  secretId: z.string().min(1),
  secretKey: z.string().min(1),
  sdkAppId: z.string().min(1),
  /** Needed inside mainland China. */
  signName: z.string().min(1).optional(),
  /** Outside mainland China, where one was registered. */
  senderId: z.string().min(1).optional(),
  region: z.string().min(1).default('ap-guangzhou'),
  templates: vendorTemplates(template),
  /** Must stand as `?token=` in the receipt address given to Tencent; without it none are taken. */
  receiptToken: z.string().min(16).optional(),
  endpoint: z.url({ protocol: /^https?$/ }).default('https://sms.tencentcloudapi.com'),
})

export type TencentSettings = z.infer<typeof tencentSettings>
