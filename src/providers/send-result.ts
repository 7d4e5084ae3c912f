import { isForeignId } from '../base/ids.ts'
import type { SendResult } from './provider.ts'

/** The message is accepted, with the vendor's id if a row can store it. */
export function accepted(messageId?: unknown): SendResult {
  return isForeignId(messageId) ? { kind: 'accepted', messageId } : { kind: 'accepted' }
}

/** The pause if a vendor throttles without naming a time. */
export const defaultRetryAfterMs = 1_000

/**
 * A result of a table of errors. `retryAfterMs` is for `throttled`. `barred`: the
 * vendor sends nothing to the number. `opted_out`: the recipient has opted out of this sender. Another provider may send it.
 */
export function refused(
  kind: Refusal | 'barred' | 'opted_out',
  detail: string,
  retryAfterMs = defaultRetryAfterMs,
): SendResult {
  if (kind === 'barred' || kind === 'opted_out') {
    const barred = { kind: 'invalid_recipient', isBarredHere: true, detail } as const
    return kind === 'barred' ? barred : { ...barred, suppresses: kind }
  }
  return kind === 'throttled' ? { kind, retryAfterMs, detail } : { kind, detail }
}

/** A table of a vendor's words by their meaning. Each list has spaces between its words. */
export function wordsBy<Meaning extends string>(
  lists: Readonly<Partial<Record<Meaning, string>>>,
): ReadonlyMap<unknown, Meaning> {
  const entries = Object.entries(lists) as [Meaning, string][]
  return new Map(
    entries.flatMap(([meaning, list]) => list.split(' ').map((word) => [word, meaning])),
  )
}

export type Refusal = Exclude<SendResult['kind'], 'accepted'>

/** True for a short code, which may be part of `detail`. A sentence of a vendor must never be in `detail`. */
export function isCode(text: unknown): text is string {
  return typeof text === 'string' && /^[A-Za-z][\w.:-]{0,79}$/.test(text)
}
