import type { Duplex } from 'node:stream'
import { invalid, problemAnswer } from './problem.ts'

/** Answers requests that Node's parser refuses: oversized headers, slow senders, anything that is not HTTP. */
export function answerClientError(error: Error & { code?: string }, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy()
    return
  }
  const [status, message] = reasons[error.code ?? ''] ?? ['400 Bad Request', 'this is not HTTP']
  const { headers, body } = problemAnswer(invalid('', message), undefined)
  const text = JSON.stringify({ ...(body as object), status: Number(status.slice(0, 3)) })
  socket.end(
    `HTTP/1.1 ${status}\r\ncontent-type: ${headers?.['content-type']}\r\n` +
      `content-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`,
  )
}

const reasons: Readonly<Record<string, readonly [string, string]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'the headers are larger than 16 kB'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'the request took too long to arrive'],
}
