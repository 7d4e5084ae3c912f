/** The answers of a façade: JSON without the charset and the ETag that Express would add. */
import type { ErrorRequestHandler, Response } from 'express'
import { statusOfRequestFault } from '../base/request-fault.ts'
import type { Answer } from '../http/problem.ts'

export function write(response: Response, { status, headers, body }: Answer): void {
  const text = body === undefined ? '' : JSON.stringify(body)
  const ofText = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }
  response.writeHead(status, {
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...(text ? ofText : {}),
    ...headers,
  })
  response.end(text)
}

/** Answers a path or a body that can't be read. Other errors are faults of this program. */
export const answerUnreadable =
  (answerTo: (isTooLarge: boolean) => Answer): ErrorRequestHandler =>
  (error, _, response, next) => {
    const status = statusOfRequestFault(error)
    if (status === undefined) return next(error)
    // Bytes of the body that were not read must not become the next request.
    write(response, { ...answerTo(status === 413), headers: { connection: 'close' } })
  }
