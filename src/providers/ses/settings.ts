import { z } from 'zod'
import { sender } from '../smtp/settings.ts'

export const sesSettings = z
  .strictObject({
    accessKeyId: z.string().min(1),
    secretAccessKey: z.string().min(1),
    region: z.string().regex(/^[a-z]{2}(-[a-z]+)+-\d$/, 'must be a region such as eu-west-1'),
    from: sender,
    configurationSet: z
      .string()
      .regex(/^[\w-]{1,64}$/)
      .optional(),
    /** Default: the address of SES in this region. */
    endpoint: z.url({ protocol: /^https?$/ }).optional(),
    /** The topics of SNS whose reports count. Absent: every topic, but only by the message id. */
    topics: z
      .array(z.string().regex(/^arn:[\w-]+:sns:[\w-]+:\d{12}:\S+$/))
      .min(1)
      .optional(),
  })
  .transform(({ endpoint, ...settings }) => ({
    ...settings,
    endpoint: endpoint ?? `https://email.${settings.region}.amazonaws.com`,
    /** A simulator of AWS has SNS at the same place. */
    origin: endpoint === undefined ? undefined : new URL(endpoint).origin,
  }))

export type SesSettings = z.infer<typeof sesSettings>
