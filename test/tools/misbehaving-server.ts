/**
 * A far end that misbehaves below its protocol, for every client that calls out. The protocol is data: what the far end
 * would say if it behaved. The misbehaviour is the same for all.
 */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { releaseLater } from './release.ts'

/** The words of a protocol. */
export interface Protocol {
  /** Sent to each new connection. */
  readonly greeting?: Buffer | undefined
  /** A good answer to these bytes of the client. Undefined if the request is not complete. */
  answer(request: Buffer): Buffer | undefined
  /** The beginning of an answer, and the part that continues it without end. */
  readonly endless: readonly [Buffer, Buffer]
  /** The same in the smallest parts that the protocol has. */
  readonly crumbs: readonly [Buffer, Buffer]
  /** Messages that nobody asked for, or that stand before an answer. */
  readonly floods: readonly Buffer[]
  /** Announces another length than it has. */
  readonly lie: Buffer
}

export const misbehaviours = [
  /** A good answer, one byte at a time. */
  'slow',
  'endless',
  /** An endless answer in parts of one byte. */
  'crumbs',
  /** Reads nothing, and sends nothing after its greeting. */
  'never reads',
  /** Reads nothing, and sends messages without end. */
  'floods',
  /** Ends its side after the request. */
  'half closes',
  'lies about the length',
] as const

export type Misbehaviour = (typeof misbehaviours)[number]

export interface MisbehavingServer {
  readonly port: number
  /** Connections so far, and open ones. */
  readonly connections: { total: number; open: number }
  /** Bytes that it has written to all its connections. */
  bytesSent(): number
}

export async function startMisbehavingServer(
  protocol: Protocol,
  misbehaviour: Misbehaviour,
): Promise<MisbehavingServer> {
  const sockets = new Set<Socket>()
  const connections = { total: 0, open: 0 }
  let sentBefore = 0

  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    connections.total++
    connections.open++
    socket.setNoDelay(true)
    socket.on('error', () => {})
    socket.on('close', () => {
      connections.open--
      sentBefore += socket.bytesWritten
      sockets.delete(socket)
    })
    if (protocol.greeting) socket.write(protocol.greeting)
    if (misbehaviour === 'never reads') return void socket.pause()
    if (misbehaviour === 'floods') {
      socket.pause()
      return void sendWithoutEnd(socket, protocol.floods)
    }
    socket.on('end', () => socket.end())
    let request = Buffer.alloc(0)
    socket.on('data', (chunk) => {
      request = Buffer.concat([request, chunk])
      const answer = protocol.answer(request)
      if (!answer) return
      request = Buffer.alloc(0)
      misbehave(socket, answer)
    })
  })

  function misbehave(socket: Socket, answer: Buffer): void {
    switch (misbehaviour) {
      case 'slow':
        return void sendSlowly(socket, answer)
      case 'half closes':
        return void socket.end()
      case 'lies about the length':
        return void socket.write(protocol.lie)
      case 'endless':
      case 'crumbs': {
        const [begin, more] = protocol[misbehaviour]
        socket.write(begin)
        void sendWithoutEnd(socket, [more])
      }
    }
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  releaseLater(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  })
  return {
    port: (server.address() as AddressInfo).port,
    connections,
    bytesSent: () => [...sockets].reduce((sum, { bytesWritten }) => sum + bytesWritten, sentBefore),
  }
}

async function sendSlowly(socket: Socket, answer: Buffer): Promise<void> {
  for (const byte of answer) {
    if (!socket.writable) return
    await new Promise<void>((resolve) => socket.write(Buffer.from([byte]), () => resolve()))
  }
}

/** Never has more than a few hundred kilobytes of its own, however slowly the client reads. */
async function sendWithoutEnd(socket: Socket, parts: readonly Buffer[]): Promise<void> {
  const each = Math.ceil(16_384 / Buffer.concat(parts).length)
  const block = Buffer.concat(Array.from({ length: each }, () => parts).flat())
  const ended = once(socket, 'close').catch(() => {})
  while (socket.writable) {
    if (!socket.write(block)) await Promise.race([once(socket, 'drain').catch(() => {}), ended])
    await new Promise((resolve) => setImmediate(resolve))
  }
}

const bytes = (text: string) => Buffer.from(text, 'latin1')

/** HTTP/1.1 with a good answer for every request. */
export const http: Protocol = {
  answer: (request) =>
    request.includes('\r\n\r\n')
      ? bytes('HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n{"id":"m-1"}')
      : undefined,
  endless: [
    bytes('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'),
    bytes(`1000\r\n${'x'.repeat(0x1000)}\r\n`),
  ],
  crumbs: [bytes('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'), bytes('1\r\nx\r\n')],
  floods: [bytes('HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n')],
  lie: bytes('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"id":"m-1"}'),
}

/** HTTP/1.1 whose answers never begin: interim answers, or a header without an end. */
export const httpInterim: Protocol = { ...http, endless: [bytes(''), http.floods[0] as Buffer] }
export const httpHeader: Protocol = {
  ...http,
  endless: [bytes('HTTP/1.1 200 OK\r\n'), bytes('a: b\r\n')],
}
