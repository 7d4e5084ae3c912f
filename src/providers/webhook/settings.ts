import { z } from 'zod'
import { isUsableSecret } from '../../crypto/standard-webhooks.ts'

export const webhookSettings = z.strictObject({
  url: z.url({ protocol: /^https?$/ }),
  /** `whsec_` and base64, or any text of 16 characters and more. */
  secret: z.string().refine(isUsableSecret, 'must be whsec_ and base64, or at least 16 characters'),
})

export type WebhookSettings = z.infer<typeof webhookSettings>
