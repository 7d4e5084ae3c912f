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
