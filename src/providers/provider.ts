/**
 * The contract of every provider.
 *
 * A provider sends one message to one vendor and returns one result of a closed set. The result also shows what it
 * concerns: the message (`rejected`), the recipient (`invalid_recipient`, `postponed`), or the account and the vendor
 * (`throttled`, `unavailable`). A result about one recipient must never be returned as one about the vendor: it would stop
 * all messages. A provider decides nothing: retries, failover, pauses and states belong to delivery. It never throws for
 * an error of the vendor, never logs, and puts no recipient, text or credential into `detail`.
 *
 * The notice id is sent as the vendor's reference, if the vendor has one. Sends are at-least-once, and only the vendor can
 * detect a repeat.
 */
import type { Channel } from '../base/channel.ts'

/** A rendered message. Which of the texts a provider uses depends on its channel and kind. */
export interface Message {
  readonly noticeId: string
  readonly channel: Channel
  /** E.164 for `sms`, one addr-spec for `email`. */
  readonly to: string
  /** The country of a number, e.g. `GB`, and its digits without the calling code. Absent: not known. */
  readonly country?: string
  readonly nationalNumber?: string
  readonly template: string
  readonly locale: string
  /** Variables of the template, for vendors that render a template. */
  readonly variables: Readonly<Record<string, string>>
  readonly subject?: string
  readonly text: string
  readonly html?: string
  /** An `https:` or `mailto:` address for unsubscribing from such mails. Codes never have one. */
  readonly listUnsubscribe?: string
  /**
   * End of the message by `performance.now()`. A later delivery is of no use, for example to a phone that is switched on
   * the next morning. Absent: no end.
   */
  readonly endsAtMs?: number
}

/** The rest of the message's life in whole seconds, from `least` to `most`. Undefined if the message has no end. */
export function secondsLeft({ endsAtMs }: Message, most: number, least = 1): number | undefined {
  if (endsAtMs === undefined) return undefined
  const left = Math.floor((endsAtMs - performance.now()) / 1_000)
  return Math.min(Math.max(left, least), most)
}

export type SendResult =
  /** The vendor accepted the message and will try to deliver it. */
  | { readonly kind: 'accepted'; readonly messageId?: string }
  /** The vendor will never accept this message, for any recipient. */
  | { readonly kind: 'rejected'; readonly detail: string }
  /** This recipient can't be reached: no such number or mailbox, or the recipient has opted out. */
  | {
      readonly kind: 'invalid_recipient'
      readonly detail: string
      /**
       * Only from this sender or by this vendor: an opt-out, or a list of the vendor. Then the next provider is called.
       */
      readonly isBarredHere?: true
      /**
       * Future messages are refused too: to this recipient after `bounced` (there is no such mailbox), by this provider
       * after `opted_out`.
       */
      readonly suppresses?: 'bounced' | 'opted_out'
    }
  /**
   * Not accepted now, only because of this recipient or message: greylisting, a full mailbox, a domain without servers, a
   * carrier's cap on one number. Other messages pass. If the vendor names a time: not before `retryAfterMs`.
   */
  | { readonly kind: 'postponed'; readonly retryAfterMs?: number; readonly detail: string }
  /** The account sends too fast, or its quota is used up: no message before `retryAfterMs`. */
  | { readonly kind: 'throttled'; readonly retryAfterMs: number; readonly detail: string }
  /** Certainly not accepted, because of vendor, account or network. No other message would be accepted either. */
  | { readonly kind: 'unavailable'; readonly detail: string }
  /** Perhaps accepted: the answer was lost after the message was handed over. */
  | { readonly kind: 'unknown'; readonly detail: string }

export interface Provider {
  /** The name under `providers:` in the policy file. */
  readonly name: string
  /** The `kind:` of its entry, e.g. `smtp`. */
  readonly kind: string
  readonly channels: readonly Channel[]
  /**
   * Calls that it can make at once: its connections or its window. It receives no more, because a further call would wait
   * while its time limit runs.
   */
  readonly slots: number
  /** Number of slots for a message, if it may need more than one. */
  slotsFor?(message: Message): number
  /**
   * Sends one message. `signal` aborts at the time limit of the attempt. The result is then `unknown` if the message was
   * already handed over, otherwise `unavailable`. It is `postponed` if the vendor has shown meanwhile that it lives; the
   * provider may report that at once with `onAlive`.
   */
  send(message: Message, signal: AbortSignal, onAlive?: () => void): Promise<SendResult>
  /**
   * The outcome of an `unknown` send, for vendors that can be queried: `accepted` if the vendor has the message,
   * `unavailable` if it certainly never accepted it, `unknown` if it does not know (yet).
   */
  query?(sent: SentMessage, signal: AbortSignal): Promise<SendResult>
  /** Ends all connections and timers, and stops sends under way. */
  close(): Promise<void>
}

/** Data that vendors need to find a message again. None can find it by the notice id alone. */
export interface SentMessage {
  readonly noticeId: string
  readonly to: string
  /** Beginning of the attempt, in milliseconds since 1970. */
  readonly sentAt: number
}
