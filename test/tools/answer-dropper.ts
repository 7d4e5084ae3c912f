import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { releaseLater } from './release.ts'

export interface AnswerDropper {
  readonly port: number
  /** Names of the statements whose answer was lost. */
  readonly lost: ReadonlySet<string>
  /** Names of all statements that write. */
  readonly seen: ReadonlySet<string>
}

/**
 * A network before PostgreSQL that loses the answer of every named statement that writes, once for each name. The
 * statement is committed. Its connection is reset at the moment in which the answer arrives.
 */
export async function startAnswerDropper(targetPort: number): Promise<AnswerDropper> {
  const lost = new Set<string>()
  const seen = new Set<string>()
  const writes = new Map<string, boolean>()
  const sockets = new Set<Socket>()

  const server = createServer((client) => {
    const target = connect({ port: targetPort, host: '127.0.0.1' })
    let isLosing = false
    for (const socket of [client, target]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        client.destroy()
        target.destroy()
      })
    }
    const read = messageReader((type, body) => {
      if (type === 'P') {
        const [name = '', text = ''] = textsOf(body)
        writes.set(name, /\b(INSERT INTO|UPDATE|DELETE FROM)\b/.test(text))
      }
      if (type !== 'B') return
      const [, name = ''] = textsOf(body)
      if (!name || !writes.get(name)) return
      seen.add(name)
      if (lost.has(name)) return
      lost.add(name)
      isLosing = true
    })
    client.on('data', (bytes) => {
      read(bytes)
      target.write(bytes)
    })
    let tail = Buffer.alloc(0)
    target.on('data', (bytes) => {
      if (!isLosing) return client.write(bytes)
      // ReadyForQuery outside a transaction: the statement is committed.
      tail = Buffer.concat([tail, bytes]).subarray(-6)
      if (tail.equals(readyForQuery)) client.resetAndDestroy()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  releaseLater(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, lost, seen }
}

const readyForQuery = Buffer.from('Z\0\0\0\x05I', 'latin1')

/** The first two texts of a message, each of which ends with a zero byte. */
const textsOf = (body: Buffer) => body.toString('utf8').split('\0', 2)

/** Calls `take` for every message of a client but the first, which has no type. */
function messageReader(take: (type: string, body: Buffer) => void): (bytes: Buffer) => void {
  let rest = Buffer.alloc(0)
  let head = 0
  return (bytes) => {
    rest = Buffer.concat([rest, bytes])
    while (rest.length >= head + 4) {
      const end = head + rest.readInt32BE(head)
      if (rest.length < end) return
      if (head > 0) take(String.fromCharCode(rest[0] as number), rest.subarray(5, end))
      rest = rest.subarray(end)
      head = 1
    }
  }
}
