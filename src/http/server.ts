import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { Socket } from 'node:net'
import { answerClientError } from './client-error.ts'
import { invalid, problemAnswer } from './problem.ts'

/**
 * How long a caller may take. Node looks for late ones only every `checkEveryMs`, by default every 30 s.
 * `stillMs` is for answers that are not fetched: a connection on which nothing moves for so long ends.
 */
const defaultPatience = {
  headersMs: 10_000,
  requestMs: 15_000,
  checkEveryMs: 1_000,
  stillMs: 20_000,
}

/**
 * Requests on one connection that wait for their answers. Hundreds fit in one packet, and each would
 * hold its answer until the caller cares to read; browsers and proxies send the next one when they have
 * the answer.
 */
const maxUnanswered = 8

/** The server of either port. A proxy's idle connections are kept for longer than its own time-out. */
export function createHttpServer(app: RequestListener, patience = defaultPatience): Server {
  const unanswered = new WeakMap<Socket, number>()
  const latest = new WeakMap<Socket, IncomingMessage>()
  /** What the parser could not read behind requests that are still being answered. */
  const unreadable = new WeakMap<Socket, Error>()

  const server = createServer(
    {
      headersTimeout: patience.headersMs,
      requestTimeout: patience.requestMs,
      connectionsCheckingInterval: patience.checkEveryMs,
      // Asked for below, because Node's own refusal says nothing.
      requireHostHeader: false,
      keepAliveTimeout: 65_000,
    },
    (request, response) => {
      const { socket } = request
      const before = unanswered.get(socket) ?? 0
      if (before >= maxUnanswered || socket.destroyed) {
        socket.destroy()
        return
      }
      unanswered.set(socket, before + 1)
      latest.set(socket, request)
      response.once('close', () => {
        const left = (unanswered.get(socket) ?? 1) - 1
        unanswered.set(socket, left)
        const error = unreadable.get(socket)
        if (error && left === 0) answerClientError(error, socket)
      })
      if (hasItsHost(request)) app(request, response)
      else answerBadHost(response)
    },
  )
  server.setTimeout(patience.stillMs)
  server.on('clientError', (error: Error, stream) => {
    const socket = stream as Socket
    // What came whole is carried out, so its answer comes first.
    const isWhole = latest.get(socket)?.complete
    if (isWhole && (unanswered.get(socket) ?? 0) > 0) unreadable.set(socket, error)
    else answerClientError(error, socket)
  })
  // An expectation that we don't know is none: the request is answered like any other.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  return server
}

/** Exactly one in HTTP/1.1 (RFC 9112, 3.2): of two, a proxy before us may have taken the other. */
function hasItsHost({ httpVersion, rawHeaders }: IncomingMessage): boolean {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string
    if (name.length === 4 && name.toLowerCase() === 'host') count += 1
  }
  return count === 1 || (count === 0 && httpVersion === '1.0')
}

function answerBadHost(response: ServerResponse): void {
  const { status, headers, body } = problemAnswer(invalid('', 'needs one Host header'), undefined)
  const text = JSON.stringify(body)
  const length = { 'content-length': Buffer.byteLength(text), connection: 'close' }
  response.writeHead(status, { ...headers, ...length }).end(text)
}
