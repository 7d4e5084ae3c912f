import {
  createServer,
  IncomingMessage,
  type RequestListener,
  type Server,
  ServerResponse,
} from 'node:http'
import { createServer as createNetServer, type Server as NetServer, type Socket } from 'node:net'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import type { Express } from 'express'
import { answerBadHost, answerClientError, endConnection } from './client-error.ts'
import type { EarlyRefusal } from './early-refusal.ts'

/**
 * Time limits for callers. Node finds late requests only every `checkEveryMs`, by default every 30 s. `stillMs` ends a
 * connection on which nothing moves, such as one whose answer is never read.
 */
const defaultPatience = {
  headersMs: 10_000,
  requestMs: 15_000,
  checkEveryMs: 1_000,
  stillMs: 20_000,
}

/**
 * The number of unanswered requests per connection. One packet has room for hundreds, and each would keep its answer
 * in memory until the caller reads. Browsers and proxies send the next request after the answer.
 */
const maxUnanswered = 8

/**
 * A stopping server closes a connection after this time without traffic. A slow proxy may notice the close late, but it
 * sends its next request on the connection that it used last.
 */
const defaultQuietMs = 2_000
const sweepEveryMs = 50
/**
 * A stop waits at most this many turns of the event loop for new connections. Otherwise a flood could prevent the stop.
 */
const maxTurns = 100
/** A stopping server waits this long for running requests. After that, bodies that are still arriving are dropped. */
const lastRequestsMs = 5_000
/** After the bodies are dropped, the requests get this time for their answers. */
const lastAnswersMs = 2_000

interface Connection {
  unanswered: number
  request?: IncomingMessage | undefined
  response?: ServerResponse | undefined
  /** An error of the parser, answered after the requests before it. */
  unreadable?: Error
  /** The last answer is under way or sent. Later requests on this connection are not carried out. */
  isEnding: boolean
  bytesRead: number
  /** Time by `performance.now()` since when the connection has been silent and no answer is due. */
  quietSinceMs: number
}

export interface HttpServer extends Server {
  /** Makes another server for the same port. This server serves its connections. */
  openDoor(): NetServer
  /**
   * Stops without resetting a request. Every later answer has `Connection: close` and is the last one on its
   * connection. For `drainMs` new connections are still accepted, so that a load balancer can notice first. Resolves
   * when all connections are closed.
   *
   * A client with an open connection may send at any moment. So only connections that were silent for a while are
   * closed, by a FIN. A request that crosses the FIN is not carried out, so the client may send it again elsewhere.
   */
  stop(options?: {
    drainMs?: number
    quietMs?: number | undefined
    onLateBodies?: () => void
  }): Promise<void>
}

/**
 * The server of the public port or of the admin port. Idle connections stay open longer than a proxy keeps them.
 * `refuse` may answer a request before `app` has it.
 */
export function createHttpServer(
  app: RequestListener,
  patience = defaultPatience,
  refuse: EarlyRefusal = () => false,
): HttpServer {
  const connections = new Map<Socket, Connection>()
  const doors: NetServer[] = []
  let connectionCount = 0
  let isStopping = false

  const server = createServer(
    {
      ...classesOf(app),
      headersTimeout: patience.headersMs,
      requestTimeout: patience.requestMs,
      connectionsCheckingInterval: patience.checkEveryMs,
      // Checked below, because Node's refusal has no body.
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
        // An idle connection keeps neither request nor response. A later request may be under way already.
        if (connection.response === response) {
          connection.request = undefined
          connection.response = undefined
        }
        connection.bytesRead = socket.bytesRead
        connection.quietSinceMs = performance.now()
        const { unreadable, unanswered } = connection
        if (unreadable && unanswered === 0) answerClientError(unreadable, socket)
      })
      if (!hasItsHost(request)) answerBadHost(response)
      else if (!refuse(request, response)) app(request, response)
    },
  )
  server.setTimeout(patience.stillMs)
  server.on('connection', (socket) => {
    connectionCount += 1
    const quietSinceMs = performance.now()
    connections.set(socket, { unanswered: 0, isEnding: false, bytesRead: 0, quietSinceMs })
    // Node calls this after the last answer.
    const { destroySoon } = socket
    socket.destroySoon = () => {
      if (connections.get(socket)?.request?.complete === false) endConnection(socket)
      else destroySoon.call(socket)
    }
    socket.once('close', () => connections.delete(socket))
  })
  server.on('clientError', (error: Error, stream) => {
    const socket = stream as Socket
    const connection = connections.get(socket)
    // A complete request is carried out, so its answer comes first.
    if (connection?.request?.complete && connection.unanswered > 0) connection.unreadable = error
    else answerClientError(error, socket)
  })
  // An unknown expectation is ignored, and the request is answered normally.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))

  /** Makes the newest answer the last one, if it has not started. */
  function endWith(socket: Socket, connection: Connection): void {
    const { response, unanswered } = connection
    if (unanswered === 0 || !response || response.headersSent) return
    response.setHeader('connection', 'close')
    connection.isEnding = true
    // Node would close both directions, and more bytes from the client would then cause a reset.
    socket.destroySoon = () => socket.end()
  }

  /**
   * Waits for a turn of the event loop without new connections. The system accepts connections before this process
   * does, and resets those when the server stops listening.
   */
  async function untilAllAccepted(): Promise<void> {
    for (let turns = 0; turns < maxTurns; turns++) {
      const before = connectionCount
      await turn()
      if (connectionCount === before && turns > 0) return
    }
  }

  function closeQuiet(quietMs: number): void {
    const nowMs = performance.now()
    for (const [socket, connection] of connections) {
      // A request that has begun to arrive must finish.
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
    // Node would destroy idle connections together with bytes that are still under way.
    server.closeIdleConnections = () => {}
    const closed = Promise.all(
      [server, ...doors].map((one) => new Promise<void>((resolve) => one.close(() => resolve()))),
    )
    const sweeping = setInterval(closeQuiet, sweepEveryMs, quietMs)
    const late = setTimeout(onLateBodies, lastRequestsMs)
    const cutOff = setTimeout(() => server.closeAllConnections(), lastRequestsMs + lastAnswersMs)
    await closed
    clearInterval(sweeping)
    clearTimeout(late)
    clearTimeout(cutOff)
  }

  function openDoor(): NetServer {
    const door = createNetServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
      server.emit('connection', socket),
    )
    doors.push(door)
    return door
  }

  return Object.assign(server, { openDoor, stop })
}

/**
 * Classes of requests and answers that have the methods of an Express app. Express sets the prototype of both for every
 * request. That costs a fifth to a third of a short answer, and nothing if the prototype is there from the start.
 */
function classesOf(app: RequestListener | Express) {
  if (!('request' in app)) return {}
  class AppRequest extends IncomingMessage {}
  class AppResponse extends ServerResponse {}
  Object.setPrototypeOf(AppRequest.prototype, app.request)
  Object.setPrototypeOf(AppResponse.prototype, app.response)
  Object.assign(app, { request: AppRequest.prototype, response: AppResponse.prototype })
  return { IncomingMessage: AppRequest, ServerResponse: AppResponse }
}

/** True for exactly one Host header (RFC 9112, 3.2). With two, a proxy in front may have used the other. */
function hasItsHost({ httpVersion, rawHeaders }: IncomingMessage): boolean {
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string
    if (name.length === 4 && name.toLowerCase() === 'host') count += 1
  }
  return count === 1 || (count === 0 && httpVersion === '1.0')
}
