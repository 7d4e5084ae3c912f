import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Behaviour, FarEnd } from '../conformance.ts'

/**
 * The connection of every far end that speaks HTTP. A vendor is a function from request to answer. Faults below HTTP
 * (hang, cut, nonsense, lost answer) are made here, the same for all.
 */
export interface VendorRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export interface VendorAnswer {
  readonly status: number
  readonly headers?: Record<string, string | string[]>
  readonly body: string
  /** Set if the vendor has accepted a message with this answer. */
  readonly taken?: { readonly reference: string; readonly to: string }
  /** The fault of the request itself, e.g. of its signature. */
  readonly complaint?: string
}

/** The answers of a vendor that takes no message. */
export type Refusals = Partial<Record<Behaviour, VendorAnswer>>

export type Vendor = (request: VendorRequest, behaviour: Behaviour) => VendorAnswer

export type HttpFarEnd = FarEnd & {
  readonly port: number
  readonly requests: readonly VendorRequest[]
}

const wireFaults: readonly Behaviour[] = ['reset_mid_answer', 'lose_answer']
const belowHttp: readonly Behaviour[] = [...wireFaults, 'hang', 'refuse_talk', 'babble']

/** `faultsAt`: the paths at which faults below HTTP happen; other requests get an answer. */
export async function startHttpFarEnd(vendor: Vendor, faultsAt: RegExp = /^/): Promise<HttpFarEnd> {
  let behaviour: Behaviour = 'accept'
  const taken: { reference: string; to: string }[] = []
  const complaints: string[] = []
  const requests: VendorRequest[] = []
  const sockets = new Set<Socket>()

  const server = createServer((incoming, outgoing) => {
    const { pathname, searchParams } = new URL(incoming.url ?? '/', 'http://vendor.test')
    const now = belowHttp.includes(behaviour) && !faultsAt.test(pathname) ? 'accept' : behaviour
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      if (now === 'hang') return
      if (now === 'refuse_talk') return void incoming.socket.resetAndDestroy()
      if (now === 'babble') return void incoming.socket.end('220 mail.example ESMTP\r\n')
      const request = {
        method: incoming.method ?? '',
        path: pathname,
        query: searchParams,
        headers: incoming.headers,
        body: Buffer.concat(chunks).toString(),
      }
      requests.push(request)
      const answer = vendor(request, wireFaults.includes(now) ? 'accept' : now)
      if (answer.complaint) complaints.push(answer.complaint)
      if (answer.taken) taken.push(answer.taken)
      if (now === 'lose_answer') return void incoming.socket.resetAndDestroy()
      outgoing.writeHead(answer.status, {
        'content-length': Buffer.byteLength(answer.body) + (now === 'reset_mid_answer' ? 1 : 0),
        ...answer.headers,
      })
      if (now !== 'reset_mid_answer') return void outgoing.end(answer.body)
      outgoing.write(answer.body.slice(0, 5), () => incoming.socket.resetAndDestroy())
    })
  })
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

  return {
    port: (server.address() as AddressInfo).port,
    taken,
    complaints,
    requests,
    async behave(next) {
      behaviour = next
    },
    openConnections: () => sockets.size,
    close() {
      for (const socket of sockets) socket.destroy()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

export function json(status: number, value: unknown, headers: Record<string, string> = {}) {
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(value),
  }
}

/** The parts for the far end of a foreign file. */
export const farEndTools = { startHttpFarEnd, json }

export type FarEndTools = typeof farEndTools
