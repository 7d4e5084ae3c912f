import { z } from 'zod'
import { defineRoute, type Route } from './route.ts'
import { channel, id, time } from './words.ts'

export const sandboxQuery = z.object({
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

/** Where the sandbox providers keep what they took. */
interface Outbox {
  list(filter: { to?: string; limit: number }): Promise<unknown[]>
  clear(): Promise<void>
}

/**
 * What the sandbox "delivered". It shows codes without a key, so these routes exist only where a
 * sandbox provider is configured, and answer only callers on the same machine.
 */
export function sandboxRoutes(outbox: Outbox): Route[] {
  return [
    defineRoute({
      method: 'get',
      path: '/sandbox/messages',
      name: 'listSandboxMessages',
      summary: 'Messages taken by sandbox providers, newest first.',
      access: 'local',
      query: sandboxQuery,
      answers: { 200: { description: 'Messages.', schema: sandboxMessages } },
      problems: ['forbidden'],
      async run({ query }) {
        const { to, limit } = query as { to?: string; limit: number }
        // A + that was not escaped arrives as a space.
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
      summary: 'Empties the sandbox.',
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
