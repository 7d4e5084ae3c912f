import http from 'node:http'
import https from 'node:https'
import { startDeadline } from './deadline.ts'

/**
 * One HTTP call with the one fact that delivery lives on: if there is no answer, had the far end
 * perhaps seen the request?
 *
 * That is why this is node:http and not fetch. fetch can't tell an abort while connecting from an
 * abort while waiting for the answer, and its pool of connections can't be closed. Here `not_sent`
 * means that not a byte of the request went over a ready connection, and `lost` everything after.
 */
export interface HttpCall {
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

export type HttpOutcome =
  | {
      readonly kind: 'answered'
      readonly status: number
      readonly headers: http.IncomingHttpHeaders
      readonly body: string
    }
  | { readonly kind: 'not_sent'; readonly reason: string }
  | { readonly kind: 'lost'; readonly reason: string }

export type HttpClient = ReturnType<typeof createHttpClient>

/** A vendor's answer is a few hundred bytes; whoever sends more is not the vendor. */
const maxAnswerBytes = 256 * 1024

/** Shorter than the keep-alive of any server in use, so that we never write to a closing connection. */
const idleTimeoutMs = 4_000

export function createHttpClient(timeoutMs: number) {
  const options = { keepAlive: true, timeout: idleTimeoutMs, maxSockets: 200, maxFreeSockets: 20 }
  const agents = { 'http:': new http.Agent(options), 'https:': new https.Agent(options) }
  const closing = new AbortController()

  /** Never rejects. The answer is whole, or there is none. */
  async function call(request: HttpCall, signal: AbortSignal): Promise<HttpOutcome> {
    if (closing.signal.aborted) return { kind: 'not_sent', reason: 'closed' }
    if (signal.aborted) return { kind: 'not_sent', reason: 'aborted' }
    const deadline = startDeadline(signal, timeoutMs)
    closing.signal.addEventListener('abort', deadline.end, { once: true })
    try {
      return await exchange(request, deadline.signal)
    } finally {
      deadline.clear()
      closing.signal.removeEventListener('abort', deadline.end)
    }
  }

  function exchange(request: HttpCall, signal: AbortSignal): Promise<HttpOutcome> {
    return new Promise((resolve) => {
      let isHandedOver = false
      const fail = (error: Error & { code?: string }) => {
        const reason = signal.aborted ? 'no answer in time' : (error.code ?? 'connection lost')
        resolve({ kind: isHandedOver ? 'lost' : 'not_sent', reason })
      }
      const target = new URL(request.url)
      const isSecure = target.protocol === 'https:'
      const outgoing = (isSecure ? https : http).request(target, {
        method: request.method,
        agent: agents[isSecure ? 'https:' : 'http:'],
        signal,
        headers: {
          ...request.headers,
          ...(request.body === undefined
            ? {}
            : { 'content-length': Buffer.byteLength(request.body) }),
        },
      })
      outgoing.on('error', fail)
      outgoing.on('socket', (socket) => {
        if (!socket.connecting) isHandedOver = true
        else socket.once(isSecure ? 'secureConnect' : 'connect', () => (isHandedOver = true))
      })
      outgoing.on('response', (incoming) => {
        const chunks: Buffer[] = []
        let bytes = 0
        incoming.on('error', fail)
        incoming.on('data', (chunk: Buffer) => {
          bytes += chunk.length
          if (bytes > maxAnswerBytes) outgoing.destroy(new Error('answer too large'))
          else chunks.push(chunk)
        })
        incoming.on('end', () => {
          const { statusCode: status = 0, headers } = incoming
          const body = Buffer.concat(chunks).toString()
          resolve({ kind: 'answered', status, headers, body })
        })
      })
      outgoing.end(request.body)
    })
  }

  return {
    call,
    close() {
      closing.abort()
      for (const agent of Object.values(agents)) agent.destroy()
    },
  }
}

/** Milliseconds of a Retry-After header, seconds or a date; `otherwise` without a usable one. */
export function retryAfterMs(
  headers: http.IncomingHttpHeaders,
  nowMs: number,
  otherwise: number,
): number {
  const text = headers['retry-after']?.trim() ?? ''
  const waitMs = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - nowMs
  return Number.isNaN(waitMs) ? otherwise : Math.min(Math.max(waitMs, 1_000), 86_400_000)
}
