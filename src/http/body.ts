/**
 * JSON bodies, from the wire to a checked value.
 *
 * express.json is not used. A wrong type, charset or encoding, a long body and bad UTF-8 each need a different
 * answer. After these checks only one JSON.parse is left. The reader also costs only a fifth of a whole refusal
 * (docs/performance.md).
 */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { ZodType } from 'zod'
import { readFields } from '../base/field-errors.ts'
import { Problem } from '../base/problems.ts'
import { Unavailable } from '../base/unavailable.ts'
import type { BodyShare } from './body-room.ts'
import { invalid } from './problem.ts'

export const maxBodyBytes = 16_384

/** A request whose body a parser of the host may have read. */
type ParsedMessage = IncomingMessage & { body?: unknown; rawBody?: unknown }

/** Throws Problem: 400 for no body, bad UTF-8 or bad JSON; 413 above 16 kB; 415 if not plain JSON; 503 without room. */
export async function readJson(request: ParsedMessage, share: BodyShare): Promise<unknown> {
  const { headers } = request
  const announcedBytes = Number(headers['content-length'])
  if (headers['transfer-encoding'] === undefined && !(announcedBytes > 0)) {
    throw invalid('', 'bodyMissing')
  }
  // A compressed body can be a bomb, and no caller needs one.
  if (!isPlainJson(headers['content-type']) || isEncoded(headers)) {
    throw new Problem('unsupported_media_type')
  }
  const body = await readBytes(request, maxBodyBytes, share)
  if (body.length === 0) throw invalid('', 'bodyMissing')
  if (!isUtf8(body)) throw invalid('', 'notUtf8')
  try {
    return JSON.parse(body.toString('utf8', markLength(body)))
  } catch {
    throw invalid('', 'notJson')
  }
}

/** The body as a parser of the host left it; undefined if there was no parser. */
export function givenJson(request: ParsedMessage): unknown {
  return Buffer.isBuffer(request.body) || !wasRead(request) ? undefined : request.body
}

/** The parsers of Express 4 set an empty body for a request that they leave unread. */
const wasRead = ({ body, readableDidRead }: ParsedMessage) =>
  readableDidRead || (body !== undefined && !isEmptyObject(body))

const isEmptyObject = (value: unknown) =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0

/** Some programs of Windows write a byte order mark, which parsers may ignore (RFC 8259, 8.1). */
const markLength = (body: Buffer) =>
  body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? 3 : 0

/** JSON has no parameters (RFC 8259, 11). Clients send some, and only another charset changes its meaning. */
function isPlainJson(type = ''): boolean {
  if (type === 'application/json') return true
  const [name = '', ...parameters] = type.toLowerCase().split(';')
  return (
    name.trim() === 'application/json' &&
    parameters.every((text) => {
      const [of = '', value = ''] = text.split('=', 2)
      return of.trim() !== 'charset' || /^"?(utf-?8|us-ascii)"?$/.test(value.trim())
    })
  )
}

const isEncoded = ({
  'content-encoding': content = 'identity',
  'transfer-encoding': transfer = 'chunked',
}: ParsedMessage['headers']) =>
  !['', 'identity'].includes(content.toLowerCase()) || transfer.toLowerCase() !== 'chunked'

/** The raw body. Throws Problem: 413 above `maxBytes`, ClientGone if it ends early, 503 without room. */
export async function readBytes(
  request: ParsedMessage,
  maxBytes: number,
  share: BodyShare,
): Promise<Buffer> {
  const announcedBytes = Number(request.headers['content-length'])
  if (announcedBytes > maxBytes) throw new Problem('payload_too_large')
  const given = givenBytes(request)
  if (given) return given
  if (request.readableEnded) throw usedUp()
  // Its events are over, so nothing below would ever end.
  if (request.destroyed) throw new ClientGone()
  // Most bodies arrive together with their head, and Node reports their end a moment later. They need no listeners, and
  // are never given up. V8 links the tables of a Set that changes with each request: the old ones, with all they refer
  // to, live until the next full collection of garbage.
  const { readableLength } = request
  if (readableLength > 0 && (request.complete || readableLength === announcedBytes)) {
    if (readableLength > maxBytes) throw new Problem('payload_too_large')
    if (!share.take(readableLength)) throw new NoRoom()
    const body: Buffer = request.read()
    // Reads the end too. Otherwise the connection keeps the request until the next one.
    request.resume()
    return body
  }
  return new Promise((resolve, reject) => {
    // One growing buffer. A list of one-byte pieces would need hundreds of bytes for each.
    let held: Buffer = noBytes
    let length = 0
    let isEnded = false
    share.onGivenUp(() => {
      held = noBytes
      reject(new NoRoom())
    })
    request.on('data', (chunk: Buffer) => {
      const start = length
      length += chunk.length
      if (length > held.length) {
        const room = Math.min(maxBytes, start === 0 ? length : Math.max(length, held.length * 2))
        const isTooLong = length > maxBytes
        if (isTooLong || !share.take(room - held.length)) {
          request.pause()
          reject(isTooLong ? new Problem('payload_too_large') : new NoRoom())
          return
        }
        // Most bodies arrive in one piece, which needs no copy.
        if (start === 0) {
          held = chunk
          return
        }
        held = Buffer.concat([held.subarray(0, start)], room)
      }
      chunk.copy(held, start)
    })
    request.on('end', () => {
      isEnded = true
      share.arrived()
      resolve(held.subarray(0, length))
    })
    // Also covers a broken connection: without an `error` listener Node only emits `close`.
    request.on('close', () => {
      if (!isEnded) reject(new ClientGone())
    })
  })
}

/** The bytes that a parser of the host has read: the body of express.raw, or the `rawBody` that `verify` kept. */
function givenBytes(request: ParsedMessage): Buffer | undefined {
  const { body, rawBody } = request
  if (Buffer.isBuffer(body)) return body
  if (Buffer.isBuffer(rawBody)) return rawBody
  if (body === undefined || !wasRead(request)) return undefined
  throw usedUp()
}

/** This is a fault of the host. After a 503, the vendor repeats the receipt until the host is corrected. */
const usedUp = () =>
  new Unavailable(
    'body',
    undefined,
    'a body parser of the host app ran before Postern and kept no raw body',
  )

const noBytes = Buffer.alloc(0)

/** True if no answer can reach the client. A client that has closed its own side gets none from Node. */
export const isGone = ({ socket }: IncomingMessage) => socket.destroyed || socket.writableEnded

/** The client left before its answer. The request is recorded as 499, and its problem is not sent. */
export class ClientGone extends Problem {
  constructor() {
    super('invalid_request', {
      errors: [{ path: '', word: 'clientGone' }],
    })
  }
}

/** Unread bytes of the body would be parsed as the next request, so the connection closes. */
export class NoRoom extends Problem {
  constructor() {
    super('unavailable', {}, { 'Retry-After': '2', connection: 'close' })
  }
}

/** The value that the schema returns. Throws a problem that lists every wrong field; their paths begin with `place`. */
export function checked(schema: ZodType, value: unknown, place: string): unknown {
  const hidden = hiddenMember(value)
  if (hidden) throw invalid(hidden, 'unknown')
  const read = readFields(schema, value, place)
  if ('data' in read) return read.data
  throw new Problem('invalid_request', { errors: read.errors })
}

/** The path of a `__proto__` member. A schema with free names would drop it silently. */
function hiddenMember(value: unknown, depth = 0): string | undefined {
  if (typeof value !== 'object' || value === null || depth > 2) return undefined
  if (Object.hasOwn(value, '__proto__')) return '__proto__'
  for (const name in value) {
    const hidden = hiddenMember((value as Record<string, unknown>)[name], depth + 1)
    if (hidden) return `${name}.${hidden}`.slice(0, 100)
  }
  return undefined
}
