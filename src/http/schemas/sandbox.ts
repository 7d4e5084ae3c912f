import { z } from 'zod'
import { channel, id, time } from './words.ts'

export const sandboxQuery = z.object({
  to: z.string().max(320).optional(),
  limit: z.coerce.number().int().min(1).max(1_000).default(50),
})

export const sandboxMessages = z.array(
  z
    .object({
      id,
      noticeId: id,
      channel,
      to: z.string(),
      subject: z.string().optional(),
      text: z.string(),
      html: z.string().optional(),
      provider: z.string(),
      sentAt: time,
    })
    .meta({ id: 'SandboxMessage' }),
)
