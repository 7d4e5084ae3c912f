/** The parts of Postern's pages: their style, built files, headers, and answers that never change. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Request, Response } from 'express'
import helmet from 'helmet'

/** The path is the same from `dist/base`. */
const web = new URL('../../web/', import.meta.url)

/** A file in `web/`. Throws if it is missing. */
export function readWebFile(path: string): Buffer {
  try {
    return readFileSync(new URL(path, web))
  } catch (error) {
    throw new Error(`web/${path} is missing; in a checkout \`npm run browser\` makes it`, {
      cause: error,
    })
  }
}

/** One style sheet from the brand and these files. */
export const brandedStyle = (...files: readonly string[]): string =>
  ['brand/brand.css', 'brand/page.css', ...files].map(readWebFile).join('')

/** The logo as SVG, also the icon of every page. */
export const logo = readWebFile('brand/postern.svg').toString()

/** Headers of Postern's pages: only files of this server load and run, and no other site can frame a page. */
export const protectOwnPages = helmet({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'"],
      imgSrc: ["'self'"],
      connectSrc: ["'self'"],
      formAction: ["'self'"],
      baseUri: ["'none'"],
      frameAncestors: ["'none'"],
    },
  },
  // With `no-referrer`, browsers would send `null` as the origin of a form.
  referrerPolicy: { policy: 'same-origin' },
  // HSTS covers a whole domain, so the proxy that ends TLS decides about it.
  strictTransportSecurity: false,
})

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
