/**
 * A client that misbehaves below HTTP, for every door that is called from outside. A door is data: a good request and
 * its answer. The misbehaviour is the same for all.
 */
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { releaseLater } from './release.ts'

/** A good request. */
export interface Asked {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** Empty for none. */
  readonly body: string
  /** It is answered before its body is read. */
  readonly isUnread?: true
}

/** The actions of a client on its connection. */
interface Deeds {
  readonly bytes: string
  /** Sent again and again behind the bytes, until the connection ends. */
  readonly more?: string
  /** Sends single bytes. */
  readonly isSlow?: true
  readonly readsNothing?: true
  /** Ends its side behind the bytes. */
  readonly halfCloses?: true
}

export interface Misbehaviour {
  deeds(asked: Asked): Deeds
  /**
   * The allowed statuses of the last answer before the connection ends. `good` is the good answer of the door. Absent if there may be
   * none. Before it, there may be good answers.
   */
  last?(good: number, asked: Asked): readonly number[]
  /** It sends a whole request, which is carried out. */
  readonly isWhole?: true
  /** Its end depends on the server and not on the router: limits of time and of requests on a connection. */
  isOfServer?(asked: Asked): boolean
  /** For doors that only read. */
  readonly isOfReading?: true
}

const head = ({ method, path, headers }: Asked, ...more: string[]) =>
  [
    `${method} ${path} HTTP/1.1`,
    ...(headers.host === undefined ? ['host: localhost'] : []),
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...more,
    '',
    '',
  ].join('\r\n')
const lengthOf = ({ body }: Asked) => `content-length: ${Buffer.byteLength(body)}`
const last = 'connection: close'
const chunked = 'transfer-encoding: chunked'
const inChunks = ({ body }: Asked) =>
  [...body].map((part) => `${Buffer.byteLength(part).toString(16)}\r\n${part}\r\n`).join('')

const good = (status: number) => [status]
const noHttp = () => [400]
const longHead = () => [431]
const late = () => [408]
const always = () => true
const isUnread = (asked: Asked) => asked.body === '' || asked.isUnread === true

/** Each by name. */
export const misbehaviours: Readonly<Record<string, Misbehaviour>> = {
  'one byte at a time': {
    deeds: (asked) => ({ bytes: head(asked, lengthOf(asked), last) + asked.body, isSlow: true }),
    last: good,
    isWhole: true,
  },
  'a body in chunks of one byte': {
    deeds: (asked) => ({ bytes: `${head(asked, chunked, last)}${inChunks(asked)}0\r\n\r\n` }),
    last: good,
    isWhole: true,
  },
  'an expectation, and the body at once': {
    deeds: (asked) => ({
      bytes: head(asked, lengthOf(asked), 'expect: 100-continue', last) + asked.body,
    }),
    last: good,
    isWhole: true,
  },
  'an unknown expectation': {
    deeds: (asked) => ({
      bytes: head(asked, lengthOf(asked), 'expect: 200-ok', last) + asked.body,
    }),
    last: good,
    isOfServer: always,
    isWhole: true,
  },
  'an offer of another protocol': {
    deeds: (asked) => ({
      bytes:
        head(asked, lengthOf(asked), 'connection: upgrade, close', 'upgrade: h2c') + asked.body,
    }),
    last: good,
    isWhole: true,
  },
  'more than it announces': {
    deeds: (asked) => ({ bytes: `${head(asked, lengthOf(asked))}${asked.body}}}` }),
    last: noHttp,
    isWhole: true,
  },
  'an end of its side behind the request': {
    deeds: (asked) => ({ bytes: head(asked, lengthOf(asked)) + asked.body, halfCloses: true }),
    // Node closes its side too, so there is an answer only if it was ready.
    isWhole: true,
  },
  'a thousand requests at once': {
    deeds(asked) {
      const [one, end] = [[], [last]].map(
        (more) => head(asked, lengthOf(asked), ...more) + asked.body,
      )
      return { bytes: `${one?.repeat(999)}${end}` }
    },
    isWhole: true,
    isOfServer: always,
  },
  'answers that are not read': {
    deeds(asked) {
      const eight = (head(asked, lengthOf(asked)) + asked.body).repeat(8)
      return { bytes: eight, more: eight, readsNothing: true }
    },
    isWhole: true,
    isOfServer: always,
    isOfReading: true,
  },
  'an end of its side within the head': {
    deeds: (asked) => ({ bytes: head(asked).slice(0, -10), halfCloses: true }),
    last: noHttp,
  },
  'a negative length': {
    deeds: (asked) => ({ bytes: head(asked, 'content-length: -1') + asked.body }),
    last: noHttp,
  },
  'a length in letters': {
    deeds: (asked) => ({ bytes: head(asked, 'content-length: 0x10') + asked.body }),
    last: noHttp,
  },
  'two lengths': {
    deeds: (asked) => ({ bytes: head(asked, lengthOf(asked), 'content-length: 1') + asked.body }),
    last: noHttp,
  },
  'the same length twice': {
    deeds: (asked) => ({ bytes: head(asked, lengthOf(asked), lengthOf(asked)) + asked.body }),
    last: noHttp,
  },
  'a length, and chunks': {
    deeds: (asked) => ({
      bytes: `${head(asked, lengthOf(asked), chunked)}${inChunks(asked)}0\r\n\r\n`,
    }),
    last: noHttp,
  },
  'a chunk of a negative length': {
    deeds: (asked) => ({ bytes: `${head(asked, chunked)}-1\r\n` }),
    last: noHttp,
  },
  'a header without end': {
    deeds: (asked) => ({ bytes: head(asked).slice(0, -2), more: 'x-long: '.padEnd(4_096, 'x') }),
    last: longHead,
  },
  'headers without end': {
    deeds: (asked) => ({ bytes: head(asked).slice(0, -2), more: 'a: b\r\n'.repeat(600) }),
    last: longHead,
  },
  'a path without end': {
    deeds: ({ method, path }) => ({ bytes: `${method} ${path}?`, more: 'a=b&'.repeat(1_000) }),
    last: longHead,
  },
  'interim answers in place of a request': {
    deeds: () => ({ bytes: '', more: 'HTTP/1.1 100 Continue\r\n\r\n' }),
    last: noHttp,
  },
  'the preface of HTTP/2': {
    deeds: () => ({ bytes: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' }),
    last: noHttp,
  },
  'the hello of TLS': {
    deeds: () => ({ bytes: '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03' }),
    last: noHttp,
  },
  'an extension of a chunk without end': {
    deeds: (asked) => ({ bytes: `${head(asked, chunked)}1;a=`, more: 'x'.repeat(4_096) }),
    last: () => [400, 413],
  },
  'headers behind the chunks without end': {
    deeds: (asked) => ({
      bytes: `${head(asked, chunked)}${inChunks(asked)}0\r\n`,
      more: 'a: b\r\n'.repeat(600),
    }),
    last: longHead,
  },
  'chunks without end': {
    deeds: (asked) => ({ bytes: head(asked, chunked), more: `1000\r\n${'x'.repeat(4_096)}\r\n` }),
    // The console answers every request that it cannot read with 400.
    last: (_, asked) => (isUnread(asked) ? [408] : [413, 400]),
    isOfServer: isUnread,
  },
  'chunks of one byte without end': {
    deeds: (asked) => ({ bytes: head(asked, chunked), more: '1\r\nx\r\n' }),
    last: late,
    isOfServer: always,
  },
  'no byte': { deeds: () => ({ bytes: '' }), last: late, isOfServer: always },
  'half a head': {
    deeds: (asked) => ({ bytes: head(asked).slice(0, -10) }),
    last: late,
    isOfServer: always,
  },
  'a head without end, one byte at a time': {
    deeds: (asked) => ({ bytes: head(asked).slice(0, -2), more: 'a', isSlow: true }),
    last: late,
    isOfServer: always,
  },
  'half a body': {
    deeds: (asked) => ({
      bytes: head(asked, `content-length: ${asked.body.length + 9}`) + asked.body,
    }),
    last: late,
    isOfServer: always,
  },
  'an expectation, and no body': {
    deeds: (asked) => ({ bytes: head(asked, 'content-length: 9', 'expect: 100-continue') }),
    last: late,
    isOfServer: always,
  },
}

export interface Ending {
  /** One of each answer that came. */
  readonly statuses: readonly number[]
  readonly text: string
  /** Undefined if the connection is still open. */
  readonly afterMs: number | undefined
}

/** True if the server ended the connection, with the right answers. */
export function endedWell(one: Misbehaviour, asked: Asked, ending: Ending, good: number): boolean {
  const { statuses, afterMs } = ending
  if (afterMs === undefined) return false
  const { last } = one
  const before = statuses.slice(0, last ? -1 : undefined)
  if (!before.every((status) => status === 100 || status === good)) return false
  const status = statuses.at(-1)
  // The reset of a connection on which bytes still arrive can overtake the answer.
  return (
    !last || (status ? last(good, asked).includes(status) : one.deeds(asked).more !== undefined)
  )
}

/** Misbehaves on one connection until the server ends it. */
export async function misbehave(url: string, deeds: Deeds, withinMs: number): Promise<Ending> {
  const socket = connect({
    host: '127.0.0.1',
    port: Number(new URL(url).port),
    allowHalfOpen: true,
  })
  releaseLater(() => socket.destroy())
  socket.setNoDelay(true)
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  let isOver = false
  const over = () => {
    isOver = true
    end()
  }
  // A server that has answered may reset the connection while bytes are still sent.
  for (const event of ['error', 'end', 'close']) socket.on(event, over)
  const chunks: Buffer[] = []
  if (deeds.readsNothing) socket.pause()
  else socket.on('data', (chunk) => chunks.push(chunk))
  const startMs = performance.now()
  void act(socket, deeds, () => isOver)
  if (deeds.readsNothing) void untilClosedByServer(socket, () => isOver).then(over)
  await Promise.race([ended, sleep(withinMs, undefined, { ref: false })])
  const afterMs = isOver ? performance.now() - startMs : undefined
  socket.destroy()
  const text = Buffer.concat(chunks).toString('latin1')
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
  return { statuses, text, afterMs }
}

async function act(socket: Socket, deeds: Deeds, isOver: () => boolean): Promise<void> {
  const { bytes, more, isSlow, halfCloses } = deeds
  const write = (part: string) =>
    new Promise<void>((resolve) => socket.write(part, 'latin1', () => resolve()))
  if (isSlow) for (const byte of bytes) await write(byte)
  else if (bytes !== '') await write(bytes)
  if (halfCloses) socket.end()
  while (more !== undefined && !isOver()) {
    await write(more)
    // As fast as many clients beside each other on one machine may be.
    await sleep(isSlow ? 500 : 50)
  }
}

/** A client that reads nothing learns of the end only from the system: its connection has left this state. */
async function untilClosedByServer(socket: Socket, isOver: () => boolean): Promise<void> {
  const established = '01'
  while (socket.connecting) await sleep(10)
  const port = `:${socket.localPort?.toString(16).toUpperCase().padStart(4, '0')}`
  // The list of a busy system may miss a connection once.
  for (let missed = 0; missed < 3 && !isOver(); ) {
    await sleep(250)
    const lines = readFileSync('/proc/net/tcp', 'latin1').split('\n')
    const own = lines
      .map((line) => line.trim().split(/\s+/))
      .find(([, local]) => local?.endsWith(port))
    missed = own?.[3] === established ? 0 : missed + 1
  }
}
