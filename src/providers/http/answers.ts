/** The meaning of a vendor's answer, by the words of the policy file. */
import { retryAfterMs } from '../../base/http-client.ts'
import type { HttpAnswer } from '../http-provider.ts'
import { readBody, textAt } from '../places.ts'
import type { SendResult } from '../provider.ts'
import { accepted, defaultRetryAfterMs, refused } from '../send-result.ts'
import type { HttpSettings } from './settings.ts'

interface Condition {
  readonly status?: readonly number[] | undefined
  readonly where?: Readonly<Record<string, readonly string[]>> | undefined
}

const longestRetryAfterMs = 86_400_000

const isGood = (status: number) => status >= 200 && status < 300

/** The result that the settings name for this answer. Undefined if they name none. */
export function namedResult(
  { errors, accepted: success }: Pick<HttpSettings, 'errors' | 'accepted'>,
  answer: HttpAnswer,
  nowMs: number,
): SendResult | undefined {
  const body = readBody(answer.body, answer.headers['content-type'])
  const fits = ({ status, where = {} }: Condition) =>
    (status?.includes(answer.status) ?? true) &&
    Object.entries(where).every(([place, words]) => {
      const text = textAt(body, place)
      return text !== undefined && words.includes(text)
    })

  const error = errors.find(fits)
  if (error) {
    const seconds = error.retryAfter === undefined ? undefined : textAt(body, error.retryAfter)
    const waitMs = waitMsOf(seconds) ?? retryAfterMs(answer.headers, nowMs, defaultRetryAfterMs)
    return refused(error.is, detailOf(answer, error), waitMs)
  }
  if (!(success.status || isGood(answer.status)) || !fits(success)) return undefined
  return accepted(success.id === undefined ? undefined : textAt(body, success.id))
}

/** The result of an answer for which neither the settings nor HTTP have one. */
export function otherResult(answer: HttpAnswer): SendResult {
  const { status } = answer
  const isAboutMessage = isGood(status) || (status >= 400 && status < 500)
  return { kind: isAboutMessage ? 'rejected' : 'unavailable', detail: detailOf(answer) }
}

/** Words of the policy file. The answer may have texts with a recipient. */
function detailOf({ status }: HttpAnswer, { where = {} }: Condition = {}): string {
  const places = Object.entries(where).map(([place, words]) => ` ${place}=${words.join('|')}`)
  return `http HTTP ${status}${places.join('')}`
}

function waitMsOf(seconds: string | undefined): number | undefined {
  if (seconds === undefined || !/^\d{1,9}(\.\d+)?$/.test(seconds)) return undefined
  return Math.min(Math.max(Number(seconds) * 1_000, 1_000), longestRetryAfterMs)
}
