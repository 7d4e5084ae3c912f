/** The missing part. `body`: a parser of the host has read the body. `challenge`: the vendor of challenges. */
type Part = 'redis' | 'postgresql' | 'body' | 'challenge'

/** A server gave no answer in time, or refused. The caller gets 503. */
export class Unavailable extends Error {
  readonly part: Part

  constructor(part: Part, cause: unknown, message = `${part} is out of reach`) {
    super(message, { cause })
    this.part = part
  }
}

/**
 * Too many requests already wait for the part, so this one does not start. The part itself is healthy. These errors
 * come in floods, and their stack is never read.
 */
export class Overloaded extends Unavailable {
  constructor(part: Part, message: string) {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(part, undefined, message)
    Error.stackTraceLimit = stackTraceLimit
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
