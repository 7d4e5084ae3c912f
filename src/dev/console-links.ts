/**
 * Signs a visitor of the demo into the console. A link works once, for a minute, and in this process alone. No other host
 * has such links: the console does not know them, and `src/dev` is not in the image.
 */
import { randomBytes } from 'node:crypto'
import { createKeyStore } from '../access/key-store.ts'
import type { Channel } from '../base/channel.ts'
import { everyApp } from '../base/names.ts'
import { createSealing } from '../console/looked-at.ts'
import { createSessions } from '../console/sessions.ts'
import type { Shared } from '../main/shared.ts'

const livesMs = 60_000
const operator = { name: 'demo-visitor', app: everyApp, kind: 'operator' } as const

export function createConsoleLinks({ servers, secrets }: Pick<Shared, 'servers' | 'secrets'>) {
  const sessions = createSessions(servers)
  const keys = createKeyStore(servers.database)
  const sealing = createSealing(secrets)
  /** The page that each ticket opens, by ticket. */
  const pages = new Map<string, string>()

  /** The key behind the sessions. Its token is not kept, so it opens the console in no other way. */
  async function keyId(): Promise<string> {
    const isOurs = ({ name, kind, isRevoked }: Awaited<ReturnType<typeof keys.list>>[number]) =>
      name === operator.name && kind === operator.kind && !isRevoked
    return (await keys.list()).find(isOurs)?.id ?? (await keys.create(operator)).id
  }

  return {
    /** The ticket of a link to the recipient's story, or to the first page. */
    create(recipient?: { channel: Channel; to: string }): string {
      const ticket = randomBytes(16).toString('base64url')
      pages.set(ticket, recipient ? `/story/${sealing.seal(recipient)}` : '/')
      setTimeout(() => pages.delete(ticket), livesMs).unref()
      return ticket
    },

    /** Undefined when the link was used, or its minute has passed. Throws Unavailable. */
    async use(ticket: string): Promise<{ page: string; token: string } | undefined> {
      const page = pages.get(ticket)
      pages.delete(ticket)
      return page === undefined ? undefined : { page, token: await sessions.start(await keyId()) }
    },
  }
}
