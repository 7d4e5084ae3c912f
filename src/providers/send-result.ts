import { isForeignId } from '../base/ids.ts'
import type { SendResult } from './provider.ts'

/** The message is taken, under the far end's id if that is fit to be kept. */
export function accepted(messageId?: unknown): SendResult {
  return isForeignId(messageId) ? { kind: 'accepted', messageId } : { kind: 'accepted' }
}

/** Where a far end says "too fast" without saying for how long. */
export const defaultRetryAfterMs = 1_000

/** Codes and words that may go into `detail`: a vendor's code, never its sentence. */
export function isCode(text: unknown): text is string {
  return typeof text === 'string' && /^[A-Za-z][\w.:-]{0,79}$/.test(text)
}
