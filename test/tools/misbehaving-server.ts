/**
 * A far end that misbehaves below its protocol, for every client that calls out. The protocol is data: the answers of a
 * far end that behaves. The misbehaviour is the same for all.
 */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { releaseLater } from './release.ts'

/** The bytes of a protocol. */
export interface Protocol {
  /** Sent to each new connection. */
  readonly greeting?: Buffer | undefined
  /** A good answer to these bytes of the client. Undefined if the request is not complete. */
  answer(request: Buffer): Buffer | undefined
  /** The beginning of an answer, and the part that continues it without end. */
  readonly endless: readonly [Buffer, Buffer]
  /** The same in the smallest parts that the protocol has. */
  readonly crumbs: readonly [Buffer, Buffer]
  /** Messages without a request, or before the answer. */
  readonly floods: readonly Buffer[]
  /** Announces more than it has. */
  readonly lie: Buffer
  /** Announces less than it has. */
  readonly excess: Buffer
}

export const misbehaviours = [
  /** Sends its answer in one part: a far end whose words are at fault. */
  'at once',
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
  'sends more than it announces',
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
      case 'at once':
        return void socket.write(answer)
      case 'slow':
        return void sendSlowly(socket, answer)
      case 'half closes':
        return void socket.end()
      case 'lies about the length':
        return void socket.write(protocol.lie)
      case 'sends more than it announces':
        return void socket.write(protocol.excess)
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

/** Writes no faster than the client reads. */
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
  excess: bytes('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{"id":"m-1"}'),
}

/** HTTP/1.1 whose answers never begin: interim answers, or a header without an end. */
export const httpInterim: Protocol = { ...http, endless: [bytes(''), http.floods[0] as Buffer] }
export const httpHeader: Protocol = {
  ...http,
  endless: [bytes('HTTP/1.1 200 OK\r\n'), bytes('a: b\r\n')],
}

/** A packet of SMPP 3.4: length, command, status, sequence, body. */
function smppPdu(command: number, sequence: number, body = bytes(''), length = 16 + body.length) {
  const head = Buffer.alloc(16)
  head.writeUInt32BE(length, 0)
  head.writeUInt32BE(command, 4)
  head.writeUInt32BE(sequence, 12)
  return Buffer.concat([head, body])
}

/** deliver_sm with a receipt in the usual text. */
const smppReceipt = smppPdu(
  0x05,
  9,
  Buffer.concat([
    bytes('\0\0\x247700900123\0\0\0Acme\0\x04\0\0\0\0\0\0\0\0\x1b'),
    bytes('id:0000017 stat:DELIVRD err'),
  ]),
)

/** An SMSC. Binds are answered, other requests not. `floods` come behind the answer to the bind. */
export const smpp = (floods: readonly Buffer[] = [smppReceipt]): Protocol => ({
  answer: (request) => {
    if (request.length < 16) return undefined
    return smppPdu(
      (request.readUInt32BE(4) | 0x80000000) >>> 0,
      request.readUInt32BE(12),
      bytes('x\0'),
    )
  },
  greeting: smppPdu(0x80000009, 1, bytes('x\0')),
  endless: [smppPdu(0x80000004, 1, bytes('x'), 65_536), bytes('x')],
  crumbs: [bytes(''), smppPdu(0x80000004, 77)],
  floods,
  lie: smppPdu(0x80000004, 1, bytes(''), 0x7fffffff),
  excess: smppPdu(0x80000009, 1, bytes('x\0'), 12),
})

export const smppFloods = {
  deliver_sm: smppReceipt,
  enquire_link: smppPdu(0x15, 3),
  'unknown commands': smppPdu(0x77, 3),
  'answers without a request': smppPdu(0x80000004, 99),
} as const

/** A mail server. It refuses pipelining, so each line has its answer. */
export const smtp: Protocol = {
  greeting: bytes('220 mail.test ESMTP\r\n'),
  answer: (request) => (request.includes('\r\n') ? bytes('250 OK\r\n') : undefined),
  endless: [bytes('250-x\r\n'), bytes('250-abcdefghijklmnop\r\n')],
  crumbs: [bytes(''), bytes('\r\n')],
  floods: [bytes('250 OK\r\n')],
  lie: bytes('250-OK\r\n'),
  excess: bytes('250 OK\r\n250-OK\r\n250 OK\r\n'),
}

/** A message of DNS over TCP, with its length before it. */
const dnsFrame = (message: Buffer, length = message.length) =>
  Buffer.concat([Buffer.from([length >> 8, length & 255]), message])

/** No such name, for a question that was not asked. */
const dnsStray = dnsFrame(
  bytes('\x01\x02\x81\x83\0\x01\0\0\0\0\0\0\x05other\x04test\0\0\x0f\0\x01'),
)

/** A name server over TCP, by which clients ask again after a truncated answer. It knows no name. */
export const dnsOverTcp: Protocol = {
  answer(request) {
    if (request.length < 2 || request.length < 2 + request.readUInt16BE(0)) return undefined
    const reply = Buffer.from(request.subarray(2, 2 + request.readUInt16BE(0)))
    reply.writeUInt16BE(0x8183, 2)
    return dnsFrame(reply)
  },
  endless: [bytes(''), dnsStray],
  crumbs: [bytes(''), dnsFrame(bytes(''))],
  floods: [dnsStray],
  lie: dnsFrame(bytes('\x01\x02'), 65_535),
  excess: dnsFrame(Buffer.concat([dnsStray, dnsStray]), 3),
}

/** Ways to break HTTP that a client can notice at once, and the protocol of each. */
export const brokenHttp: readonly (readonly [name: string, Misbehaviour, Protocol])[] = [
  ['a body without end', 'endless', http],
  ['a body in parts of one byte without end', 'crumbs', http],
  ['interim answers without end', 'endless', httpInterim],
  ['a header without end', 'endless', httpHeader],
  ['an end before the answer', 'half closes', http],
]
