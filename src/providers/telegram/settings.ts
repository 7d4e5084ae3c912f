import { z } from 'zod'

export const telegramSettings = z.strictObject({
  /** The access token of the Gateway account. It also signs reports. */
  token: z.string().min(1),
  /** The verified Telegram channel that sends the codes. Without it, Telegram sends them itself. */
  senderUsername: z
    .string()
    .regex(/^[A-Za-z]\w{3,31}$/, 'must be a username without @')
    .optional(),
  /** The public address for reports. */
  callbackUrl: z
    .url({ protocol: /^https?$/ })
    .max(256)
    .optional(),
  endpoint: z.url({ protocol: /^https?$/ }).default('https://gatewayapi.telegram.org'),
})

export type TelegramSettings = z.infer<typeof telegramSettings>
