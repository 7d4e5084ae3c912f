/**
 * JSON bodies, from the wire to a checked value.
 *
 * express.json is not used. A wrong type, charset or encoding, a long body and bad UTF-8 each need a different
 * answer. After these checks only one JSON.parse is left. The reader also costs only a fifth of a whole refusal
 * (docs/performance.md).
 */
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { ZodError, ZodType } from 'zod'
import { missingInWords } from '../base/missing.ts'
import { type FieldError, Problem } from '../base/problems.ts'
import { Unavailable } from '../base/unavailable.ts'
import { invalid } from './problem.ts'

const maxBodyBytes = 16_384

/** A request whose body a parser of the host may have read. */
type ParsedMessage = IncomingMessage & { body?: unknown; rawBody?: unknown }

/** The share of one request in the room for bodies. */
export type BodyShare = ReturnType<ReturnType<typeof createBodyRoom>['open']>

/**
 * Limits the bytes of bodies that a process keeps at a time, so that slow senders can't fill its memory. Bytes count
 * when they arrive; an announced length takes no room.
 *
 * If the room is full, the body that began to arrive first and is still arriving is given up. Otherwise a stranger with
 * a few hundred slow bodies could keep out all others.
 */
export function createBodyRoom(maxBytes: number) {
  let takenBytes = 0
  let isClosed = false
  /** Functions that give up a body. One for each body that is still arriving. */
  const unfinished = new Set<() => void>()
  /** The same functions for bodies whose first bytes have arrived, the oldest first. */
  const arriving = new Set<() => void>()

  function makeRoom(bytes: number, forBody: (() => void) | undefined): boolean {
    for (const giveUp of arriving) {
      if (takenBytes + bytes <= maxBytes) break
      if (giveUp !== forBody) giveUp()
    }
    return takenBytes + bytes <= maxBytes
  }

  return {
    open() {
      let ownBytes = 0
      let isGivenUp = false
      let giveUp: (() => void) | undefined

      function arrived(): void {
        if (!giveUp) return
        unfinished.delete(giveUp)
        arriving.delete(giveUp)
      }
      function close(): void {
        takenBytes -= ownBytes
        ownBytes = 0
        arrived()
      }
      return {
        /** False if there is no room for the bytes. */
        take(bytes: number): boolean {
          if (isClosed || isGivenUp || !makeRoom(bytes, giveUp)) return false
          takenBytes += bytes
          ownBytes += bytes
          if (giveUp) arriving.add(giveUp)
          return true
        },
        /** `stop` is called when the body is given up: the room closes or is full while the body is still arriving. */
        onGivenUp(stop: () => void): void {
          giveUp = () => {
            isGivenUp = true
            close()
            stop()
          }
          unfinished.add(giveUp)
        },
        /** The body is complete, and keeps its room until `close`. */
        arrived,
        /** Called when the body is no longer needed. */
        close,
      }
    },
    /** Closes the room: bodies that are still arriving are dropped. */
    close(): void {
      isClosed = true
      for (const giveUp of unfinished) giveUp()
    },
  }
}

/** Throws Problem: 400 for no body, bad UTF-8 or bad JSON; 413 above 16 kB; 415 if not plain JSON; 503 without room. */
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

/** The body as a parser of the host left it; undefined if there was no parser. */
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

/** The raw body. Throws Problem: 413 above `maxBytes`, 400 if it ends early, 503 without room. */
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
      if (!isEnded) reject(invalid('', 'the body ended early'))
    })
  })
}

/** The bytes that a parser of the host has read: the body of express.raw, or the `rawBody` that `verify` kept. */
function givenBytes({ body, rawBody }: ParsedMessage): Buffer | undefined {
  if (Buffer.isBuffer(body)) return body
  if (Buffer.isBuffer(rawBody)) return rawBody
  if (body === undefined) return undefined
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

/** Unread bytes of the body would be parsed as the next request, so the connection closes. */
export class NoRoom extends Problem {
  constructor() {
    super('unavailable', {}, { 'Retry-After': '2', connection: 'close' })
  }
}

/** The value that the schema returns. Throws a problem that lists every wrong field; their paths begin with `place`. */
export function checked(schema: ZodType, value: unknown, place: string): unknown {
  const hidden = hiddenMember(value)
  if (hidden)
    throw new Problem('invalid_request', { errors: [{ path: hidden, message: 'unknown field' }] })
  const parsed = schema.safeParse(value, missingInWords)
  if (parsed.success) return parsed.data
  throw new Problem('invalid_request', { errors: fieldErrors(parsed.error, place).slice(0, 20) })
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

function fieldErrors(error: ZodError, place: string): FieldError[] {
  return error.issues.flatMap((issue) => {
    const at = [place, ...issue.path.map(String)].filter(Boolean)
    const pathOf = (names: string[]) => names.join('.').slice(0, 100)
    return issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => ({ path: pathOf([...at, key]), message: 'unknown field' }))
      : [{ path: pathOf(at), message: issue.message }]
  })
}
