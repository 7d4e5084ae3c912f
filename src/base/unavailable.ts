/** Redis or PostgreSQL gave no answer in time, or a definite no: the caller gets 503. */
export class Unavailable extends Error {
  readonly part: 'redis' | 'postgresql'

  constructor(part: 'redis' | 'postgresql', cause: unknown, message = `${part} is out of reach`) {
    super(message, { cause })
    this.part = part
  }
}
