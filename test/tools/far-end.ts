import { createServer } from 'node:http'
import { listen } from './listen.ts'

/** The reaction of the far end to one call. */
export type FarEndAnswer =
  | {
      readonly status: number
      readonly headers?: Readonly<Record<string, string>>
      /** Used in place of its id for the message. */
      readonly body?: string
    }
  /** Never answers. */
  | 'hang'
  /** Breaks the connection and does not accept the message. */
  | 'reset'
  /** Accepts the message, and the answer is lost. */
  | 'lose'

export interface FarEndCall {
  readonly noticeId: string
  readonly to: string
  readonly text: string
  /** The number of calls for this notice, including this one. */
  readonly nth: number
}

/** A carrier behind the webhook provider that counts. */
export interface FarEnd {
  readonly url: string
  /** The number of calls for each notice, with any answer. */
  readonly calls: Map<string, number>
  /** The number of times that each notice was accepted. */
  readonly taken: Map<string, number>
  /** Recipients that reached it. */
  readonly recipients: Set<string>
  /** Can be replaced at any time. At first it accepts everything. */
  behave: (call: FarEndCall) => FarEndAnswer | Promise<FarEndAnswer>
}

export const takesAll = (): FarEndAnswer => ({ status: 200 })

export async function startFarEnd(): Promise<FarEnd> {
  const farEnd = {
    calls: new Map<string, number>(),
    taken: new Map<string, number>(),
    recipients: new Set<string>(),
    behave: takesAll as FarEnd['behave'],
  }
  const count = (counts: Map<string, number>, id: string) => {
    const nth = (counts.get(id) ?? 0) + 1
    counts.set(id, nth)
    return nth
  }
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.once('end', async () => {
      const { noticeId, to, text } = JSON.parse(Buffer.concat(chunks).toString())
      farEnd.recipients.add(to)
      const answer = await farEnd.behave({ noticeId, to, text, nth: count(farEnd.calls, noticeId) })
      if (answer === 'hang') return
      if (answer === 'reset') return void incoming.socket.resetAndDestroy()
      const isTaken = answer === 'lose' || answer.status < 300
      if (isTaken) count(farEnd.taken, noticeId)
      if (answer === 'lose') return void incoming.socket.resetAndDestroy()
      response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers })
      response.end(answer.body ?? JSON.stringify(isTaken ? { id: `far-${noticeId}` } : {}))
    })
  })
  const url = `${await listen(server)}/send`
  return Object.assign(farEnd, { url })
}
