/** What the work needs; `body` where a host's parser has eaten it, `challenge`: who sells them. */
type Part = 'redis' | 'postgresql' | 'body' | 'challenge'

/** A server gave no answer in time, or a definite no: the caller gets 503. */
export class Unavailable extends Error {
  readonly part: Part

  constructor(part: Part, cause: unknown, message = `${part} is out of reach`) {
    super(message, { cause })
    this.part = part
  }
}

/**
 * Too many wait for the part already, so this request is not begun: no fault of the part. It comes in floods, and its
 * stack is never read.
 */
export class Overloaded extends Unavailable {
  constructor(part: Part, message: string) {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(part, undefined, message)
    Error.stackTraceLimit = stackTraceLimit
  }
}
