import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
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

/**
 * A connection that nothing moved on for so long is closed by a server that stops. A proxy that is short of processor time
 * may notice that late, and sends the next request on the connection that it used last.
 */
const defaultQuietMs = 2_000
const sweepEveryMs = 50
/** Of the event loop, in which a flood of new connections may hold up the stop. */
const maxTurns = 100
/** How long a server that stops waits for requests under way; bodies that are still arriving then are given up. */
const lastRequestsMs = 5_000
/** How long the answers to those may take. */
const lastAnswersMs = 2_000

/** What is known of an open connection. */
interface Connection {
  /** Requests that wait for their answers. */
  unanswered: number
  request?: IncomingMessage
  response?: ServerResponse
  /** What the parser could not read behind requests that are still being answered. */
  unreadable?: Error
  /** Its last answer is under way or given: nothing that comes after it is carried out. */
  isEnding: boolean
  bytesRead: number
  /** Since when nothing was read and no answer was due, by `performance.now()`. */
  quietSinceMs: number
}

export interface HttpServer extends Server {
  /**
   * Ends in a way that resets no request. Every answer from now on says `Connection: close` and is the last one on its
   * connection. For `drainMs` new connections are still accepted, so that a load balancer can find out first.
   * Resolves when all connections are closed.
   *
   * A client that keeps its connection may be sending on it at any moment. So only those that have been quiet for a while
   * are closed, by a FIN; what meets it on its way is not carried out and may be sent again elsewhere.
   */
  stop(options?: {
    drainMs?: number
    quietMs?: number | undefined
    /** Called when bodies that are still arriving should be given up. */
    onLateBodies?: () => void
  }): Promise<void>
}

/** The server of either port. A proxy's idle connections are kept for longer than its own time-out. */
export function createHttpServer(app: RequestListener, patience = defaultPatience): HttpServer {
  const connections = new Map<Socket, Connection>()
  let accepted = 0
  let isStopping = false

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
      const connection = connections.get(socket)
      if (!connection || connection.unanswered >= maxUnanswered || socket.destroyed) {
        socket.destroy()
        return
      }
      if (connection.isEnding) {
        request.resume()
        return
      }
      connection.unanswered += 1
      connection.request = request
      connection.response = response
      if (isStopping) endWith(socket, connection)
      response.once('close', () => {
        connection.unanswered -= 1
        connection.bytesRead = socket.bytesRead
        connection.quietSinceMs = performance.now()
        const { unreadable, unanswered } = connection
        if (unreadable && unanswered === 0) answerClientError(unreadable, socket)
      })
      if (hasItsHost(request)) app(request, response)
      else answerBadHost(response)
    },
  )
  server.setTimeout(patience.stillMs)
  server.on('connection', (socket) => {
    accepted += 1
    const quietSinceMs = performance.now()
    connections.set(socket, { unanswered: 0, isEnding: false, bytesRead: 0, quietSinceMs })
    socket.once('close', () => connections.delete(socket))
  })
  server.on('clientError', (error: Error, stream) => {
    const socket = stream as Socket
    const connection = connections.get(socket)
    // What came whole is carried out, so its answer comes first.
    if (connection?.request?.complete && connection.unanswered > 0) connection.unreadable = error
    else answerClientError(error, socket)
  })
  // An expectation that we don't know is none: the request is answered like any other.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))

  /** Makes the newest answer the last one, if it has not begun. */
  function endWith(socket: Socket, connection: Connection): void {
    const { response, unanswered } = connection
    if (unanswered === 0 || !response || response.headersSent) return
    response.setHeader('connection', 'close')
    connection.isEnding = true
    // Node would close both ways, and what the client is still sending would make that a reset.
    socket.destroySoon = () => socket.end()
  }

  /**
   * Connections that the system has accepted and this process has not are reset when it stops listening. So that comes
   * right after a turn of the event loop that brought none.
   */
  async function untilAllAccepted(): Promise<void> {
    for (let turns = 0; turns < maxTurns; turns++) {
      const before = accepted
      await turn()
      if (accepted === before && turns > 0) return
    }
  }

  function closeQuiet(quietMs: number): void {
    const nowMs = performance.now()
    for (const [socket, connection] of connections) {
      // What has begun to arrive is waited for.
      if (connection.unanswered > 0 || socket.bytesRead !== connection.bytesRead) continue
      if (nowMs - connection.quietSinceMs >= quietMs) {
        connection.isEnding = true
        socket.end()
      }
    }
  }

  const stop: HttpServer['stop'] = async (options = {}) => {
    const { drainMs = 0, quietMs = defaultQuietMs, onLateBodies = () => {} } = options
    isStopping = true
    for (const [socket, connection] of connections) endWith(socket, connection)
    await sleep(drainMs)
    await untilAllAccepted()
    // Node would destroy idle connections with what is on its way on them.
    server.closeIdleConnections = () => {}
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    const sweeping = setInterval(closeQuiet, sweepEveryMs, quietMs)
    const late = setTimeout(onLateBodies, lastRequestsMs)
    const cutOff = setTimeout(() => server.closeAllConnections(), lastRequestsMs + lastAnswersMs)
    await closed
    clearInterval(sweeping)
    clearTimeout(late)
    clearTimeout(cutOff)
  }

  return Object.assign(server, { stop })
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
