import type { DetailWord } from './words.ts'

/** Every error: its code and status. `words` has its texts. A test compares docs/http.md with this list. */
export const problems = {
  invalid_request: { status: 400 },
  unauthorized: { status: 401 },
  forbidden: { status: 403 },
  destination_not_allowed: { status: 403 },
  challenge_required: { status: 403 },
  not_found: { status: 404 },
  method_not_allowed: { status: 405 },
  payload_too_large: { status: 413 },
  unsupported_media_type: { status: 415 },
  invalid_recipient: { status: 422 },
  limited: { status: 429 },
  locked: { status: 429 },
  code_mismatch: { status: 422 },
  code_gone: { status: 410 },
  no_more_ways: { status: 409 },
  idempotency_in_progress: { status: 409 },
  idempotency_key_reused: { status: 422 },
  unavailable: { status: 503 },
  internal: { status: 500 },
} as const satisfies Record<string, { status: number }>

export type ProblemCode = keyof typeof problems

/** The problem types of draft-ietf-httpapi-ratelimit-headers. A lock follows a suspicious pattern. */
const registeredTypes: Partial<Record<ProblemCode, string>> = {
  limited: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
  locked: 'https://iana.org/assignments/http-problem-types#abnormal-usage-detected',
}

export const problemType = (code: ProblemCode): string =>
  registeredTypes[code] ?? `urn:postern:problem:${code}`

/**
 * A refusal that ends the request with a problem document. Only http makes one, from a wrong request or an outcome of
 * the other rooms. It is thrown, or returned where refusals come in floods.
 */
export class Problem extends Error {
  readonly code: ProblemCode
  readonly members: Readonly<Record<string, unknown>>
  readonly headers: Readonly<Record<string, string>>
  /** The sentence for people, if it is not the one of the code. */
  readonly says: DetailWord | undefined

  constructor(
    code: ProblemCode,
    members: Readonly<Record<string, unknown>> = {},
    headers: Readonly<Record<string, string>> = {},
    says?: DetailWord,
  ) {
    // The stack of a refusal is never read, and capturing one is expensive in a flood of refusals.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(code)
    Error.stackTraceLimit = stackTraceLimit
    this.code = code
    this.members = members
    this.headers = headers
    this.says = says
  }
}
