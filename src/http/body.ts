/**
 * JSON bodies, from the wire to a checked value.
 *
 * Our own reader instead of express.json: it must hear of the wrong type, charset or encoding, of an
 * over-long body and of bad UTF-8 anyway, each with an answer of its own, and what is left of the work
 * then is one JSON.parse. It also costs a fifth of what a whole refusal may cost (docs/performance.md).
 */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { ZodError, ZodType } from 'zod'
import { type FieldError, Problem, Unavailable } from '../base/problems.ts'
import { invalid } from './problem.ts'

const maxBodyBytes = 16_384

/** A request whose body a parser before us may have read. */
type ParsedMessage = IncomingMessage & { body?: unknown; rawBody?: unknown }

export type BodyRoom = ReturnType<typeof createBodyRoom>
/** What one request holds of it. */
export type BodyShare = ReturnType<BodyRoom['open']>

/**
 * The bytes of bodies that a process holds at a time, so that slow senders in any number can't pin more
 * than this. Counted as they arrive: an announced body takes no room from others.
 */
export function createBodyRoom(maxBytes: number) {
  let takenBytes = 0
  let isClosed = false
  const readers = new Set<() => void>()
  return {
    open() {
      let ownBytes = 0
      let reader: (() => void) | undefined
      return {
        /** False when there is no room for them. */
        take(bytes: number): boolean {
          if (isClosed || takenBytes + bytes > maxBytes) return false
          takenBytes += bytes
          ownBytes += bytes
          return true
        },
        /** `stop` is called when the room closes while the body is still arriving. */
        onRoomClosed(stop: () => void): void {
          reader = stop
          readers.add(stop)
        },
        /** Once the body is not needed any more. */
        close(): void {
          takenBytes -= ownBytes
          ownBytes = 0
          if (reader) readers.delete(reader)
        },
      }
    },
    /** From now on there is no room; bodies that are still arriving are given up. */
    close(): void {
      isClosed = true
      for (const stop of readers) stop()
    },
  }
}

/**
 * Throws Problem: 400 for no body, no UTF-8 or no JSON, 413 above 16 kB, 415 for anything but plain
 * JSON, 503 when there is no room for it now.
 */
export async function readJson(request: ParsedMessage, share: BodyShare): Promise<unknown> {
  const { headers } = request
  const announcedBytes = Number(headers['content-length'])
  if (headers['transfer-encoding'] === undefined && !(announcedBytes > 0)) {
    throw invalid('', 'the body is missing')
  }
  // A compressed body can be a bomb, and no caller needs one.
  if (!isPlainJson(headers['content-type']) || isEncoded(headers)) {
    throw new Problem('unsupported_media_type')
  }
  const body = await readBytes(request, maxBodyBytes, share)
  if (body.length === 0) throw invalid('', 'the body is missing')
  if (!isUtf8(body)) throw invalid('', 'the body is not UTF-8')
  try {
    return JSON.parse(body.toString())
  } catch {
    throw invalid('', 'the body is not JSON')
  }
}

/** What a parser of the host's, before us, has made of the body; undefined where there was none. */
export function givenJson(request: ParsedMessage): unknown {
  return Buffer.isBuffer(request.body) ? undefined : request.body
}

const isPlainJson = (type = '') =>
  type === 'application/json' || /^application\/json\s*(;\s*charset="?utf-8"?\s*)?;?$/i.test(type)

const isEncoded = ({
  'content-encoding': content = 'identity',
  'transfer-encoding': transfer = 'chunked',
}: ParsedMessage['headers']) =>
  !['', 'identity'].includes(content) || transfer.toLowerCase() !== 'chunked'

/** The body as it came. Throws Problem: 413 above `maxBytes`, 400 when it ends early, 503 without room. */
export function readBytes(
  request: ParsedMessage,
  maxBytes: number,
  share: BodyShare,
): Promise<Buffer> {
  if (Number(request.headers['content-length']) > maxBytes) {
    return Promise.reject(new Problem('payload_too_large'))
  }
  const given = givenBytes(request)
  if (given) return Promise.resolve(given)
  if (request.readableEnded) return Promise.reject(usedUp())
  return new Promise((resolve, reject) => {
    // One buffer that grows, because a list of pieces of one byte would hold hundreds of bytes for each.
    let held: Buffer = noBytes
    let length = 0
    let isEnded = false
    share.onRoomClosed(() => reject(noRoom()))
    request.on('data', (chunk: Buffer) => {
      const start = length
      length += chunk.length
      if (length > held.length) {
        const room = Math.min(maxBytes, start === 0 ? length : Math.max(length, held.length * 2))
        const isTooLong = length > maxBytes
        if (isTooLong || !share.take(room - held.length)) {
          request.pause()
          reject(isTooLong ? new Problem('payload_too_large') : noRoom())
          return
        }
        // Most bodies come in one piece, which needs no copy.
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
      resolve(held.subarray(0, length))
    })
    // A connection that broke: without a listener for its error Node only closes the request.
    request.on('close', () => {
      if (!isEnded) reject(invalid('', 'the body ended early'))
    })
  })
}

/** The bytes that a host's parser has read: express.raw's body, or the `rawBody` that a `verify` keeps. */
function givenBytes({ body, rawBody }: ParsedMessage): Buffer | undefined {
  if (Buffer.isBuffer(body)) return body
  if (Buffer.isBuffer(rawBody)) return rawBody
  if (body === undefined) return undefined
  throw usedUp()
}

/** A fault of the host, which a vendor's repeat may outlive. */
const usedUp = () =>
  new Unavailable('body', undefined, 'a parser before Postern has used up a body that it must read')

const noBytes = Buffer.alloc(0)

/** What was not read of the body would be taken for the next request. */
const noRoom = () => new Problem('unavailable', {}, { 'Retry-After': '2', connection: 'close' })

/** The value as the schema makes it, or a problem that names every wrong field below `place`. */
export function checked(schema: ZodType, value: unknown, place: string): unknown {
  const hidden = hiddenMember(value)
  if (hidden)
    throw new Problem('invalid_request', { errors: [{ path: hidden, message: 'unknown field' }] })
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw new Problem('invalid_request', { errors: fieldErrors(parsed.error, place).slice(0, 20) })
}

/** The path of a `__proto__`, which a schema of free names would leave out without a word. */
function hiddenMember(value: unknown, depth = 0): string | undefined {
  if (typeof value !== 'object' || value === null || depth > 2) return undefined
  if (Object.hasOwn(value, '__proto__')) return '__proto__'
  for (const name in value) {
    const hidden = hiddenMember((value as Record<string, unknown>)[name], depth + 1)
    if (hidden) return `${name}.${hidden}`.slice(0, 100)
  }
  return undefined
}

function fieldErrors(error: ZodError, place: string): FieldError[] {
  return error.issues.flatMap((issue) => {
    const at = [place, ...issue.path.map(String)].filter(Boolean)
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => ({
        path: [...at, key].join('.').slice(0, 100),
        message: 'unknown field',
      }))
    }
    return [{ path: at.join('.').slice(0, 100), message: issue.message }]
  })
}
