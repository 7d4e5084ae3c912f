import { createServer, type IncomingHttpHeaders } from 'node:http'
import { listen } from '../tools/listen.ts'

/** One request as it arrived. */
export interface Told {
  /** The same for a repeat. */
  readonly id: string
  readonly headers: IncomingHttpHeaders
  readonly raw: string
  // biome-ignore lint/suspicious/noExplicitAny: each test knows what its events carry
  readonly event: { type: string; timestamp: string; data: any }
}

export interface EventReceiver {
  readonly url: string
  readonly told: Told[]
  /** The status of the answer. 0: it never answers. -1: it breaks the connection. */
  statusOf: (told: Told) => number | Promise<number>
}

/** A receiver that stores what it gets. At first it accepts everything. */
export async function startReceiver(
  statusOf: EventReceiver['statusOf'] = () => 204,
): Promise<EventReceiver> {
  const receiver = { url: '', told: [] as Told[], statusOf }
  const server = createServer(async (incoming, response) => {
    let raw = ''
    for await (const chunk of incoming.setEncoding('utf8')) raw += chunk
    const id = String(incoming.headers['webhook-id'])
    const told = { id, headers: incoming.headers, raw, event: JSON.parse(raw) }
    receiver.told.push(told)
    const status = await receiver.statusOf(told)
    if (status === -1) incoming.socket.destroy()
    else if (status !== 0) response.writeHead(status, { location: '/elsewhere' }).end()
  })
  receiver.url = `${await listen(server)}/events`
  return receiver
}
