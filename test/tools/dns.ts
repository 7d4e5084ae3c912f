import { createSocket } from 'node:dgram'
import dns from 'node:dns'
import { once } from 'node:events'
import { releaseLater } from './release.ts'

/** The answers for a name. A type that is not given has no records. */
export interface DnsRecords {
  /** An exchange of '' is the root, which makes a null MX (RFC 7505). */
  readonly mx?: readonly (readonly [preference: number, exchange: string])[]
  readonly a?: readonly string[]
  readonly aaaa?: readonly string[]
  readonly txt?: readonly string[]
  readonly delayMs?: number
}

export type DnsAnswer = DnsRecords | 'nxdomain' | 'servfail' | 'refused' | 'silence' | DnsForgery

/** Datagrams in place of an answer, of which none is a good answer to the question. */
export interface DnsForgery {
  /** Gets a reply without such a name, and the query. */
  forge(nxdomain: Buffer, query: Buffer): readonly Buffer[]
}

export interface TestDns {
  /** As `setServers` takes it. */
  readonly address: string
  /** Names without an entry do not exist. */
  readonly names: Map<string, DnsAnswer>
  /** The questions in their order: `MX example.test`. */
  readonly queries: string[]
}

const types = { A: 1, MX: 15, TXT: 16, AAAA: 28 } as const
type TypeName = keyof typeof types
const refusalCodes = { servfail: 2, nxdomain: 3, refused: 5 } as const

/** A real name server on loopback, over UDP. */
export async function startDns(
  names: Record<string, DnsAnswer> = {},
  wantedPort = 0,
): Promise<TestDns> {
  const known = new Map(Object.entries(names))
  const queries: string[] = []
  const timers = new Set<NodeJS.Timeout>()
  const socket = createSocket('udp4')
  socket.on('message', (query, from) => {
    const { name, type, end } = questionOf(query)
    const typeName = (Object.keys(types) as TypeName[]).find((each) => types[each] === type)
    queries.push(`${typeName ?? type} ${name}`)
    const found = known.get(name) ?? 'nxdomain'
    if (found === 'silence') return
    if (typeof found === 'object' && 'forge' in found) {
      const nxdomain = replyTo(query, end, refusalCodes.nxdomain, [])
      for (const datagram of found.forge(nxdomain, query)) {
        socket.send(datagram, from.port, from.address, () => {})
      }
      return
    }
    const reply =
      typeof found === 'string'
        ? replyTo(query, end, refusalCodes[found], [])
        : replyTo(query, end, 0, typeName ? recordsOf(found, typeName) : [])
    const timer = setTimeout(
      () => {
        timers.delete(timer)
        socket.send(reply, from.port, from.address)
      },
      typeof found === 'string' ? 0 : (found.delayMs ?? 0),
    )
    timers.add(timer)
  })
  socket.bind(wantedPort, '127.0.0.1')
  await once(socket, 'listening')
  releaseLater(() => {
    for (const timer of timers) clearTimeout(timer)
    return new Promise<void>((done) => socket.close(done))
  })
  return { address: `127.0.0.1:${socket.address().port}`, names: known, queries }
}

/** This process asks that server from now on, until the test or file ends. */
export function useDns({ address }: TestDns): void {
  const before = dns.getServers()
  dns.setServers([address])
  releaseLater(() => dns.setServers(before))
}

function questionOf(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 }
}

function recordsOf(records: DnsRecords, type: TypeName): { type: number; data: Buffer }[] {
  const made = {
    A: () => (records.a ?? []).map((ip) => Buffer.from(ip.split('.').map(Number))),
    AAAA: () => (records.aaaa ?? []).map((hex) => Buffer.from(hex, 'hex')),
    TXT: () => (records.txt ?? []).map(textData),
    MX: () =>
      (records.mx ?? []).map(([preference, exchange]) =>
        Buffer.concat([Buffer.from([preference >> 8, preference & 255]), nameData(exchange)]),
      ),
  }[type]()
  return made.map((data) => ({ type: types[type], data }))
}

/** In pieces of at most 255 bytes, as for long keys. */
function textData(text: string): Buffer {
  const pieces = text.match(/.{1,255}/gs) ?? ['']
  return Buffer.concat(pieces.flatMap((piece) => [Buffer.from([piece.length]), Buffer.from(piece)]))
}

function nameData(name: string): Buffer {
  const labels = name.split('.').filter((label) => label !== '')
  const parts = labels.map((label) =>
    Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]),
  )
  return Buffer.concat([...parts, Buffer.from([0])])
}

/** The question is sent back, and each record points at its name. */
function replyTo(
  query: Buffer,
  questionEnd: number,
  code: number,
  records: { type: number; data: Buffer }[],
): Buffer {
  const head = Buffer.alloc(12)
  query.copy(head, 0, 0, 2)
  // A response, with recursion desired and available.
  head.writeUInt16BE(0x8180 | code, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(records.length, 6)
  const answers = records.map(({ type, data }) => {
    const fixed = Buffer.alloc(12)
    fixed.writeUInt16BE(0xc00c, 0)
    fixed.writeUInt16BE(type, 2)
    fixed.writeUInt16BE(1, 4)
    fixed.writeUInt32BE(60, 6)
    fixed.writeUInt16BE(data.length, 10)
    return Buffer.concat([fixed, data])
  })
  return Buffer.concat([head, query.subarray(12, questionEnd), ...answers])
}
