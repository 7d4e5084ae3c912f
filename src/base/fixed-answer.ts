import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Request, Response } from 'express'

/**
 * Sends bytes that never change. Clients that accept gzip get them compressed, which is done once, by a thread of Node.
 * The caller sets the content type.
 */
export function createFixedAnswer(content: string | Buffer) {
  let gzipped: Promise<Buffer> | undefined
  return async (request: Request, response: Response): Promise<void> => {
    response.vary('Accept-Encoding')
    if (request.acceptsEncodings('gzip') !== 'gzip') {
      response.send(content)
      return
    }
    gzipped ??= promisify(gzip)(content, { level: 9 })
    const bytes = await gzipped
    response.set('Content-Encoding', 'gzip').send(bytes)
  }
}
