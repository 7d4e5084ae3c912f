import type { RequestHandler } from 'express'

/**
 * A parser of Express for bodies of at most `maxBytes`. By itself, it refuses a longer one only after the last byte, which
 * may never come. This refuses it at once, with the same error. Unread bytes must not become the next request, so the
 * answer ends the connection.
 */
export function boundedParser(parser: RequestHandler, maxBytes: number): RequestHandler {
  return (request, response, next) => {
    let isRefused = false
    function refuse(): void {
      isRefused = true
      request.off('data', count)
      response.setHeader('connection', 'close')
      next(
        Object.assign(new Error('the body is too large'), {
          type: 'entity.too.large',
          status: 413,
          expose: true,
        }),
      )
    }
    let bytes = 0
    function count(chunk: Buffer): void {
      bytes += chunk.length
      if (bytes > maxBytes) refuse()
    }
    // A parser of the host may have read it before.
    if (request.readableDidRead) return parser(request, response, next)
    if (Number(request.headers['content-length']) > maxBytes) return refuse()
    if (request.headers['transfer-encoding'] !== undefined) request.on('data', count)
    parser(request, response, (error) => {
      // A body of another type is left unread, and is none of this parser's.
      request.off('data', count)
      if (!isRefused) next(error)
    })
  }
}
