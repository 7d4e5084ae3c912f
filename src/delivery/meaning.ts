/**
 * What each outcome of a call means for the message, its tries and the provider's breaker.
 *
 * Tries are for answers about this message and for messages that may have arrived. What was surely not taken costs none:
 * the message waits until its time ends. Only what says that the provider itself is away counts for its breaker, so one
 * recipient's answer keeps no other message back.
 */
import type { Outcome } from '../notice/states.ts'

export interface Meaning {
  /** It uses up one of `delivery.tries`. */
  usesTry: boolean
  /** The message was surely not taken, and this provider may take it later. */
  waits: boolean
  /** The provider did not do its work: five of these in a row open its breaker. */
  isOutage: boolean
}

const isFinal: Meaning = { usesTry: true, waits: false, isOutage: false }
const waits: Meaning = { usesTry: false, waits: true, isOutage: false }

export const meanings: Readonly<Record<Outcome, Meaning>> = {
  accepted: isFinal,
  rejected: isFinal,
  invalid_recipient: isFinal,
  postponed: waits,
  throttled: waits,
  unavailable: { ...waits, isOutage: true },
  unknown: { usesTry: true, waits: false, isOutage: true },
  not_taken: { usesTry: false, waits: false, isOutage: false },
}
