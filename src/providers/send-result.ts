import { type HttpOutcome, retryAfterMs } from '../base/http-client.ts'
import { isForeignId } from '../base/ids.ts'
import type { SendResult } from './provider.ts'

/** The message is taken, under the far end's id if that is fit to be kept. */
export function accepted(messageId?: unknown): SendResult {
  return isForeignId(messageId) ? { kind: 'accepted', messageId } : { kind: 'accepted' }
}

/** Where a far end says "too fast" without saying for how long. */
export const defaultRetryAfterMs = 1_000

export type HttpAnswer = Extract<HttpOutcome, { kind: 'answered' }>

/**
 * What the HTTP layer alone can tell, for every kind that talks HTTP: a result, or the answer whose body
 * has the word. A 5xx is the far end's own "I didn't"; a 504 is a gateway's "I don't know".
 */
export function readTransport(
  outcome: HttpOutcome,
  label: string,
  nowMs: number,
): { result: SendResult; answer?: undefined } | { result?: undefined; answer: HttpAnswer } {
  if (outcome.kind !== 'answered') {
    const kind = outcome.kind === 'not_sent' ? 'unavailable' : 'unknown'
    return { result: { kind, detail: `${label} ${outcome.reason}` } }
  }
  const detail = `${label} HTTP ${outcome.status}`
  if (outcome.status === 429) {
    const waitMs = retryAfterMs(outcome.headers, nowMs, defaultRetryAfterMs)
    return { result: { kind: 'throttled', retryAfterMs: waitMs, detail } }
  }
  if (outcome.status === 504) return { result: { kind: 'unknown', detail } }
  if (outcome.status >= 500) return { result: { kind: 'unavailable', detail } }
  return { answer: outcome }
}

/** Codes and words that may go into `detail`: a vendor's code, never its sentence. */
export function isCode(text: unknown): text is string {
  return typeof text === 'string' && /^[A-Za-z][\w.:-]{0,79}$/.test(text)
}
