/**
 * Connections to Redis that are open but useless. ioredis keeps both kinds, and makes a new connection only after the
 * old one has ended:
 *
 * - to a server that has become a replica, while the address leads to the new master. Such a server refuses writes, and
 *   its reads are old.
 * - through a network that silently carries no bytes, while new connections work.
 */
import { orLate } from './deadline.ts'

/** The part of an ioredis connection that this module needs. The limiter is also used without ioredis. */
interface Connection {
  readonly status?: string
  readonly stream?: { destroy(): unknown } | undefined
  getex?(key: string): Promise<unknown>
}

export interface Connections extends Connection {
  nodes?(): readonly Connection[]
}

/** A command that a replica refuses, and that changes nothing at a master. */
const probeKey = 'postern:probe'

const connectionsOf = (client: Connections) => client.nodes?.() ?? [client]

export function isOfReplica(error: Error): boolean {
  return /^(READONLY|MASTERDOWN) /.test(error.message)
}

/** Ends the open connections of a client. ioredis makes new ones. */
export function dropConnections(client: Connections): void {
  for (const { status, stream } of connectionsOf(client)) if (status === 'ready') stream?.destroy()
}

/** Ends connections that give no answer in time. Resolves when each has given an answer or was ended. */
export async function dropSilent(client: Connections, answerMs: number): Promise<void> {
  await Promise.all(
    connectionsOf(client).map(async (connection) => {
      const { status, stream } = connection
      if (status !== 'ready' || !connection.getex) return
      const answered = connection.getex(probeKey).then(
        () => true,
        (error: Error) => error.name === 'ReplyError',
      )
      if (await orLate(answered, answerMs, () => false)) return
      // It may have ended and been replaced meanwhile.
      if (connection.stream === stream) stream?.destroy()
    }),
  )
}
