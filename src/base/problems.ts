/** Every error: `code`, status, and the text for people. A test compares docs/http.md with this list. */
export const problems = {
  invalid_request: {
    status: 400,
    title: 'The request is not valid',
    en: 'Some fields are missing or wrong; see errors.',
    zh: '请求参数有误，详见 errors。',
  },
  unauthorized: {
    status: 401,
    title: 'No valid API key',
    en: 'Send a valid API key as "Authorization: Bearer <key>".',
    zh: '缺少有效的 API 密钥，请使用 "Authorization: Bearer <key>"。',
  },
  forbidden: {
    status: 403,
    title: 'Not allowed',
    en: 'This caller may not do that.',
    zh: '该调用方无权执行此操作。',
  },
  destination_not_allowed: {
    status: 403,
    title: 'Destination not allowed',
    en: 'Messages cannot be sent to this destination.',
    zh: '不支持向该地区或号码发送。',
  },
  challenge_required: {
    status: 403,
    title: 'Challenge required',
    en: 'Solve the challenge and send its solution with the request.',
    zh: '请先完成人机验证。',
  },
  not_found: { status: 404, title: 'Not found', en: 'There is nothing here.', zh: '资源不存在。' },
  method_not_allowed: {
    status: 405,
    title: 'Method not allowed',
    en: 'This address does not accept that method; see Allow.',
    zh: '该地址不支持此请求方法，请参见 Allow。',
  },
  payload_too_large: {
    status: 413,
    title: 'Body too large',
    en: 'The body is larger than this call accepts.',
    zh: '请求体超过此接口的上限。',
  },
  unsupported_media_type: {
    status: 415,
    title: 'Unsupported media type',
    en: 'Send the body as application/json in UTF-8, not compressed.',
    zh: '请求体须为未压缩的 UTF-8 编码 application/json。',
  },
  invalid_recipient: {
    status: 422,
    title: 'Invalid recipient',
    en: 'This is not a number or address that messages can be sent to.',
    zh: '手机号或邮箱地址无效。',
  },
  limited: {
    status: 429,
    title: 'Too many requests',
    en: 'Too many requests. Try again in {time}.',
    zh: '请求过于频繁，请 {time}后再试。',
  },
  locked: {
    status: 429,
    title: 'Locked',
    en: 'Locked after too many tries. Try again in {time}.',
    zh: '尝试次数过多，已被锁定，请 {time}后再试。',
  },
  code_mismatch: {
    status: 422,
    title: 'Wrong code',
    en: 'The code is wrong. Type it again.',
    zh: '验证码错误，请重新输入。',
  },
  code_gone: {
    status: 410,
    title: 'No valid code',
    en: 'There is no valid code any more. Request a new one.',
    zh: '验证码已失效，请重新获取。',
  },
  idempotency_in_progress: {
    status: 409,
    title: 'Request in progress',
    en: 'A request with this Idempotency-Key is still being processed.',
    zh: '相同 Idempotency-Key 的请求正在处理中。',
  },
  idempotency_key_reused: {
    status: 422,
    title: 'Idempotency-Key reused',
    en: 'This Idempotency-Key was used for another request.',
    zh: '该 Idempotency-Key 已用于另一个请求。',
  },
  unavailable: {
    status: 503,
    title: 'Temporarily unavailable',
    en: 'Temporarily unavailable. Nothing was counted, and usually nothing was sent. Try again soon.',
    zh: '服务暂时不可用，本次未计次，通常也未发送，请稍后再试。',
  },
  internal: {
    status: 500,
    title: 'Internal error',
    en: 'The service had an unexpected error.',
    zh: '服务器内部错误。',
  },
} as const satisfies Record<string, { status: number; title: string; en: string; zh: string }>

export type ProblemCode = keyof typeof problems

/** The problem types of draft-ietf-httpapi-ratelimit-headers. A lock follows a suspicious pattern. */
const registeredTypes: Partial<Record<ProblemCode, string>> = {
  limited: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
  locked: 'https://iana.org/assignments/http-problem-types#abnormal-usage-detected',
}

export const problemType = (code: ProblemCode): string =>
  registeredTypes[code] ?? `urn:postern:problem:${code}`

/** A wrong field of a request and the reason. `path` is as in `params.name`, empty for the body itself. */
export interface FieldError {
  path: string
  message: string
}

/**
 * A refusal that ends the request with a problem document. Only http makes one, from a wrong request or an outcome of
 * the other rooms. It is thrown, or returned where refusals come in floods.
 */
export class Problem extends Error {
  readonly code: ProblemCode
  readonly members: Readonly<Record<string, unknown>>
  readonly headers: Readonly<Record<string, string>>

  constructor(
    code: ProblemCode,
    members: Readonly<Record<string, unknown>> = {},
    headers: Readonly<Record<string, string>> = {},
  ) {
    // The stack of a refusal is never read, and capturing one is expensive in a flood of refusals.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(code)
    Error.stackTraceLimit = stackTraceLimit
    this.code = code
    this.members = members
    this.headers = headers
  }
}
