import { z } from 'zod'
import { defineRoute, type Route } from './route.ts'
import { channel, id, time } from './schemas.ts'

export const sandboxQuery = z.strictObject({
  to: z.string().max(320).optional(),
  limit: z.coerce.number().int().min(1).max(1_000).default(50),
})

const sandboxMessages = z.array(
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

interface Outbox {
  list(filter: { to?: string; limit: number }): Promise<unknown[]>
  clear(): Promise<void>
}

/**
 * Messages that the sandbox "delivered". They show codes and need no key. So the routes exist only if a sandbox
 * provider is configured, and answer only callers on the same machine.
 */
export function sandboxRoutes(outbox: Outbox): Route[] {
  return [
    defineRoute({
      method: 'get',
      path: '/sandbox/messages',
      name: 'listSandboxMessages',
      summary: 'List the messages of sandbox providers, newest first.',
      access: 'local',
      query: sandboxQuery,
      answers: { 200: { description: 'Messages.', schema: sandboxMessages } },
      problems: ['forbidden'],
      async run({ query }) {
        const { to, limit } = query as { to?: string; limit: number }
        // An unescaped + arrives as a space.
        const number = to?.replace(/^ /, '+')
        return {
          status: 200,
          body: await outbox.list({ ...(number ? { to: number } : {}), limit }),
        }
      },
    }),
    defineRoute({
      method: 'delete',
      path: '/sandbox/messages',
      name: 'clearSandboxMessages',
      summary: 'Empty the sandbox.',
      access: 'local',
      answers: { 204: { description: 'Emptied.' } },
      problems: ['forbidden'],
      async run() {
        await outbox.clear()
        return { status: 204 }
      },
    }),
  ]
}
