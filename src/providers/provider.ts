/**
 * The contract every provider keeps.
 *
 * A provider carries one message to one far end and says, in a closed set of results, what became of
 * it and whom the answer is about: the message (`rejected`), the recipient (`invalid_recipient`, `postponed`), or the
 * account and the far end (`throttled`, `unavailable`). An answer about one recipient must never be given as one about
 * the far end: it would keep everybody's messages back. A provider decides nothing: retries, failover, pauses and
 * states belong to delivery. It never throws for something the far end did, never logs, and puts no recipient, text or
 * credential into `detail`.
 * The notice id travels as the far end's own reference wherever that has one, because sends are
 * at-least-once and the far end is the only place that can tell a repeat.
 */
import type { Channel } from '../base/channel.ts'

/** A rendered message. Which of the texts a provider uses depends on its channel and kind. */
export interface Message {
  readonly noticeId: string
  readonly channel: Channel
  /** E.164 for `sms`, one addr-spec for `email`. */
  readonly to: string
  readonly template: string
  readonly locale: string
  /** The template's variables as strings, for providers that render by a template of their own. */
  readonly variables: Readonly<Record<string, string>>
  readonly subject?: string
  readonly text: string
  readonly html?: string
  /** An address of `https:` or `mailto:` by which the recipient wants no more such mails; never of a code. */
  readonly listUnsubscribe?: string
  /**
   * By `performance.now()`: a message that arrives later is of no use, so the far end shouldn't deliver it to a phone
   * that is switched on the next morning. Absent: no end.
   */
  readonly endsAtMs?: number
}

export type SendResult =
  /** The far end has taken the message and will try to deliver it. */
  | { readonly kind: 'accepted'; readonly messageId?: string }
  /** This message will never pass here, to any recipient. */
  | { readonly kind: 'rejected'; readonly detail: string }
  /** This recipient can't be reached: no such number or mailbox, or it has opted out. */
  | { readonly kind: 'invalid_recipient'; readonly detail: string }
  /**
   * Not taken now, because of this recipient or this message alone: greylisting, a full mailbox, a domain without
   * servers, a carrier's cap on one number. Other messages pass. Where the far end names a time: not before
   * `retryAfterMs`.
   */
  | { readonly kind: 'postponed'; readonly retryAfterMs?: number; readonly detail: string }
  /** Our account is too fast, or a quota of it is used up: no message before `retryAfterMs`. */
  | { readonly kind: 'throttled'; readonly retryAfterMs: number; readonly detail: string }
  /**
   * Certainly not taken, because of the far end, our account, or the way there: it would have taken no other message
   * either.
   */
  | { readonly kind: 'unavailable'; readonly detail: string }
  /** May or may not have been taken: the answer was lost after the message was handed over. */
  | { readonly kind: 'unknown'; readonly detail: string }

export interface Provider {
  /** The name under `providers:` in the policy file. */
  readonly name: string
  /** The `kind:` it was made from, e.g. `smtp`. */
  readonly kind: string
  readonly channels: readonly Channel[]
  /**
   * Calls it carries at once: its connections, its window. Another one would wait inside, on a clock that
   * is the far end's, so it is given no more.
   */
  readonly slots: number
  /** Slots a message takes, where that may be more than one. */
  slotsFor?(message: Message): number
  /**
   * Sends one message. `signal` aborts at the time limit of the attempt; a provider that had already
   * handed the message over then answers `unknown`, otherwise `unavailable`; or `postponed`, if the far end has shown
   * meanwhile that it lives, which `onAlive` may tell at once.
   */
  send(message: Message, signal: AbortSignal, onAlive?: () => void): Promise<SendResult>
  /**
   * What became of an `unknown` send, where the far end can be asked: `accepted` when it knows the
   * message, `unavailable` when it certainly never took it, `unknown` when it can't say (yet).
   */
  query?(sent: SentMessage, signal: AbortSignal): Promise<SendResult>
  /** Ends every connection and timer; sends under way are given up. */
  close(): Promise<void>
}

/** What the far ends need to find a message again: none of them can be asked by our reference alone. */
export interface SentMessage {
  readonly noticeId: string
  readonly to: string
  /** When the attempt began, in milliseconds since 1970. */
  readonly sentAt: number
}
