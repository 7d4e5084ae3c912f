/**
 * The missing part. `body`: a parser of the host has read the body. `challenge`: the vendor of challenges. `process`: no
 * server, but this process.
 */
type Part = 'redis' | 'postgresql' | 'body' | 'challenge' | 'process'

/**
 * A server gave no answer in time, or refused. The caller gets 503. These errors come in floods, and the message and the
 * cause explain them. So they have no stack.
 */
export class Unavailable extends Error {
  readonly part: Part

  constructor(part: Part, cause: unknown, message = `${part} is out of reach`) {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(message, { cause })
    Error.stackTraceLimit = stackTraceLimit
    this.part = part
  }
}

/** Too many requests already wait for the part, so this one does not start. The part itself is healthy. */
export class Overloaded extends Unavailable {
  constructor(part: Part, message: string) {
    super(part, undefined, message)
  }
}

/** The reply to a Redis command. Throws `Unavailable` if Redis gives no answer. */
export async function reachRedis<Reply>(command: Promise<Reply>): Promise<Reply> {
  try {
    return await command
  } catch (error) {
    throw new Unavailable('redis', error)
  }
}
