import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Request, Response } from 'express'

/**
 * Larger bytes are always sent compressed, because a stranger could ask for them again and again. Browsers accept that,
 * and so does a client that names no encoding (RFC 9110, 12.5.3).
 */
const largestPlainBytes = 100_000

/**
 * Sends bytes that never change. Clients that accept gzip get them compressed, which is done once, by a thread of Node.
 * The caller sets the content type.
 */
export function createFixedAnswer(content: string | Buffer) {
  // Express would hash the bytes of every answer. A weak tag is for the plain and the compressed bytes.
  const tag = `W/"${createHash('sha256').update(content).digest('base64url')}"`
  let gzipped: Promise<Buffer> | undefined
  return async (request: Request, response: Response): Promise<void> => {
    response.vary('Accept-Encoding').set('ETag', tag)
    const isSmall = content.length <= largestPlainBytes
    if (isSmall && request.acceptsEncodings('gzip') !== 'gzip') {
      response.send(content)
      return
    }
    gzipped ??= promisify(gzip)(content, { level: 9 })
    const bytes = await gzipped
    response.set('Content-Encoding', 'gzip').send(bytes)
  }
}
