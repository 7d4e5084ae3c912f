/** Errors of Twilio's API: status, code and text. https://www.twilio.com/docs/api/errors has a page for each code. */
import type { PosternCalls } from '../../http/in-process.ts'
import type { Answer } from '../../http/problem.ts'

const faults = {
  20003: { status: 401, message: 'Authenticate' },
  20004: { status: 405, message: 'Method not allowed' },
  20404: { status: 404, message: 'The requested resource was not found' },
  20503: { status: 503, message: 'Service unavailable' },
  60200: { status: 400, message: 'Invalid parameter' },
  60202: { status: 429, message: 'Max check attempts reached' },
  60203: { status: 429, message: 'Max send attempts reached' },
  60205: { status: 403, message: 'SMS is not supported by landline phone number' },
  60223: { status: 403, message: 'Delivery channel disabled' },
  60410: { status: 403, message: 'Verification delivery attempt blocked' },
} as const

export type FaultCode = keyof typeof faults

export function fault(code: FaultCode, reason?: string, headers?: Answer['headers']): Answer {
  const { status, message } = faults[code]
  const body = {
    code,
    message: reason === undefined ? message : `${message}: ${reason}`,
    more_info: `https://www.twilio.com/docs/errors/${code}`,
    status,
  }
  return { status, headers: code === 20503 ? { 'retry-after': '2' } : headers, body }
}

type Outcome = Exclude<Awaited<ReturnType<PosternCalls[keyof PosternCalls]>>, Buffer | number>

/** The fault for an outcome. `whenLimited`: the error code if a limit refuses this call. */
export function faultOf(outcome: Outcome, whenLimited: 60202 | 60203): Answer {
  switch (outcome.outcome) {
    case 'unavailable':
      return fault(20503)
    case 'limited':
    case 'locked': {
      const seconds = Math.ceil(outcome.retryAfterMs / 1_000)
      return fault(whenLimited, undefined, { 'retry-after': String(seconds) })
    }
    case 'invalid_request': {
      const [{ path, message } = { path: '', message: '' }] = outcome.errors
      if (path === 'channel') return fault(60223, message)
      return fault(60200, `${parameters[path] ?? path} ${message}`)
    }
    case 'invalid_recipient':
      return outcome.because === 'type' ? fault(60205) : fault(60200, 'To')
    case 'destination_not_allowed':
      return outcome.reason === 'type' ? fault(60205) : fault(60410, outcome.reason)
    case 'code_gone':
      return fault(outcome.reason === 'tries' ? 60202 : 20404)
    case 'not_found':
      return fault(20404)
    default:
      throw new Error(`no answer is known for ${outcome.outcome}`)
  }
}

/** Twilio's names for fields of the calls. */
const parameters: Readonly<Record<string, string>> = {
  to: 'To',
  code: 'CustomCode',
  ip: 'DeviceIp',
  locale: 'Locale',
  from: 'DateCreatedAfter',
  before: 'DateCreatedBefore',
  cursor: 'PageToken',
}
