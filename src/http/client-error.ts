import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FieldWord } from '../base/words.ts'
import { invalid, problemAnswer } from './problem.ts'

/** Answers requests that Node's parser refuses: oversized headers, slow senders, anything that is not HTTP. */
export function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const [status, word] = reasons[error.code ?? ''] ?? ['400 Bad Request', 'notHttp']
  const { headers, text } = lastAnswer(Number(status.slice(0, 3)), word)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  endConnection(socket, `HTTP/1.1 ${status}\r\n${lines.join('')}\r\n${text}`)
}

export function answerBadHost(response: ServerResponse): void {
  const { headers, text } = lastAnswer(400, 'oneHost')
  response.writeHead(400, headers).end(text)
}

/** The last answer of a connection, to a request that reaches no route and gets no log line. */
function lastAnswer(status: number, word: FieldWord) {
  const { headers, body } = problemAnswer(invalid('', word), undefined)
  const text = JSON.stringify({ ...(body as object), status })
  return {
    text,
    headers: {
      ...headers,
      'x-request-id': randomUUID(),
      'cache-control': 'no-store',
      'content-length': Buffer.byteLength(text),
      connection: 'close',
    },
  }
}

const reasons: Readonly<Record<string, readonly [string, FieldWord]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'longHeaders'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'slowRequest'],
}

/** A client that still sends gets this time to read its answer. */
const lingerMs = 2_000

/**
 * Ends a connection whose request is not complete. If both directions were closed now, the next bytes of the client would
 * cause a reset. That discards an answer which the client has not read. So its bytes are dropped for a while (RFC 9112,
 * 9.6).
 */
export function endConnection(socket: Socket, lastBytes = ''): void {
  socket.end(lastBytes)
  // In place of the parser, which would report a fault of each.
  socket
    .removeAllListeners('data')
    .on('data', () => {})
    .resume()
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.once('close', () => clearTimeout(timer))
}
