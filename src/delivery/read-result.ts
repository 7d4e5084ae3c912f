/** Checks the result of a provider, because providers of plugins may be untyped JavaScript. */
import { isForeignId } from '../base/ids.ts'
import { isObject } from '../base/json.ts'
import { textProblem } from '../base/text-problem.ts'
import type { SendResult } from '../providers/provider.ts'
import { type Quotable, withoutQuotes } from './without-quotes.ts'

const maxDetail = 200
/** Shorter waits would call the provider in a loop. */
const shortestRetryAfterMs = 1_000
const longestRetryAfterMs = 86_400_000
/** The wait after `throttled` if the result names none. */
const defaultRetryAfterMs = 10_000
const withDetail = ['rejected', 'invalid_recipient', 'postponed', 'unavailable', 'unknown'] as const

/**
 * Undefined for an invalid result. A message id or a detail that a row can't store is left out, so that the outcome can
 * be stored. Parts of the detail that quote the message are hidden.
 */
export function readResult(given: unknown, message: Quotable): SendResult | undefined {
  if (!isObject(given)) return undefined
  const { kind: named, messageId } = given
  if (named === 'accepted') return { kind: named, ...(isForeignId(messageId) ? { messageId } : {}) }
  const detail = detailIn(given.detail, message)
  const retryAfterMs = waitIn(given.retryAfterMs)
  if (named === 'throttled') {
    return { kind: named, retryAfterMs: retryAfterMs ?? defaultRetryAfterMs, detail }
  }
  const kind = withDetail.find((each) => each === named)
  if (kind === 'postponed' && retryAfterMs !== undefined) return { kind, retryAfterMs, detail }
  return kind && { kind, detail }
}

function detailIn(given: unknown, message: Quotable): string {
  if (typeof given !== 'string' || textProblem(given)) return 'the detail can not be stored'
  // More is read than stored. Otherwise a quote at the end could be cut and not be found.
  return withoutQuotes(given.slice(0, 2 * maxDetail), message)
    .slice(0, maxDetail)
    .toWellFormed()
}

function waitIn(given: unknown): number | undefined {
  if (typeof given !== 'number' || Number.isNaN(given)) return undefined
  return Math.min(Math.max(given, shortestRetryAfterMs), longestRetryAfterMs)
}
