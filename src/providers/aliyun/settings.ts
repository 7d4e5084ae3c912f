import { z } from 'zod'
import { vendorTemplates } from '../vendor-templates.ts'

const template = z.union([
  /** Every variable is sent under its own name. */
  z.string().min(1),
  z.strictObject({
    id: z.string().min(1),
    /** Their variable: ours. */
    params: z.record(z.string().min(1), z.string().min(1)).optional(),
    signName: z.string().min(1).optional(),
  }),
])

export const aliyunSettings = z.strictObject({
  accessKeyId: z.string().min(1),
  accessKeySecret: z.string().min(1),
  signName: z.string().min(1),
  templates: vendorTemplates(template),
  /** Must stand as `?token=` in the receipt address given to Aliyun; without it none are taken. */
  receiptToken: z.string().min(16).optional(),
  endpoint: z.url({ protocol: /^https?$/ }).default('https://dysmsapi.aliyuncs.com'),
})

export type AliyunSettings = z.infer<typeof aliyunSettings>
