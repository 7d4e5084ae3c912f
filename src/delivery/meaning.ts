/**
 * The meaning of each outcome for the message, its tries and the circuit breaker of the provider.
 *
 * A try is used up by an answer about this message, or by a message that may have arrived. A message that was surely not
 * accepted uses up none: it waits until its time ends. Only failures of the provider itself count for its breaker, so the
 * answer about one recipient stops no other message.
 */
import type { AttemptOutcome } from '../notice/states.ts'

export interface Meaning {
  /** It uses up one of `delivery.tries`. */
  usesTry: boolean
  /** The provider surely did not accept the message, but may accept it later. */
  waits: boolean
  /** The provider failed. Five of these in a row open its breaker. */
  isOutage: boolean
}

const isFinal: Meaning = { usesTry: true, waits: false, isOutage: false }
const waits: Meaning = { usesTry: false, waits: true, isOutage: false }

export const meanings: Readonly<Record<AttemptOutcome, Meaning>> = {
  accepted: isFinal,
  rejected: isFinal,
  invalid_recipient: isFinal,
  postponed: waits,
  throttled: waits,
  unavailable: { ...waits, isOutage: true },
  unknown: { usesTry: true, waits: false, isOutage: true },
  not_taken: { usesTry: false, waits: false, isOutage: false },
}
