/**
 * Recipients that must get nothing, because a provider reported so. Mail servers count mail to
 * addresses that do not exist, and complaints. Of a sender with many, they take all mail for spam.
 *
 * - `bounced`: there is no such mailbox. Nothing is sent to it.
 * - `complained`: the person called a message spam. Notices are not sent, and codes that the person asks for are.
 * - `opted_out`: the person wants no messages of this provider's sender. Other providers may send.
 *
 * A suppression belongs to an app and has the recipient only as a keyed hash. Its end is computed when it is read, so a
 * changed setting changes all. An ended suppression stays in the table: a repeated or late report about a message from
 * before the end must not begin it again.
 */
import type { Channel } from '../base/channel.ts'
import {
  type SuppressFor,
  type SuppressionReason,
  suppressionReasons,
} from '../base/suppression.ts'
import { addressKindOf, channelsOfKind } from '../recipient/channels.ts'
import type { Database } from '../storage/database.ts'

/** A suppression in force. */
export interface Suppression {
  reason: SuppressionReason
  provider: string
  since: Date
  until: Date
}

/** The values of `appliesSql`, in the order of `suppressionReasons`. */
export const suppressValues = ({ bounced, complained, optedOut }: SuppressFor) =>
  [bounced, complained, optedOut].map((ms) => (ms === false ? null : ms))

const order = `ARRAY[${suppressionReasons.map((reason) => `'${reason}'`).join(', ')}]`
const untilSql = (n: number) =>
  `(s.at + ($${n}::float8[])[array_position(${order}, s.reason)] * interval '1 millisecond')`

/** True for a suppression `s` in force. `$n`: `suppressValues`. */
export const appliesSql = (n: number) => `(s.ended_at IS NULL AND ${untilSql(n)} > now())`

/** The suppressions in force of the notice `n`, as JSON; null if there are none. */
export const suppressedSql = (n: number) => `
  (SELECT json_agg(json_build_object('reason', s.reason, 'provider', s.provider)) FROM suppression s
   WHERE s.recipient_hash = n.recipient_hash AND s.app = n.app AND ${appliesSql(n)})`

/**
 * Reports `r (app, recipient_hash, reason, provider, sent_at)` that begin a suppression. A repeated report begins none, nor
 * does a report about a message from before the end or the beginning of an earlier one.
 */
export const isNewsSql = `NOT EXISTS (
  SELECT FROM suppression s
  WHERE s.recipient_hash = r.recipient_hash AND s.app = r.app AND s.reason = r.reason AND s.provider = r.provider
    AND greatest(s.at, s.ended_at) >= r.sent_at)`

/** Begins a suppression for each row of `news (app, recipient_hash, reason, provider)`. No two rows are equal. */
export const suppressSql = (news: string) => `
  INSERT INTO suppression (app, recipient_hash, reason, provider)
  SELECT app, recipient_hash, reason, provider FROM ${news}
  ON CONFLICT (recipient_hash, app, reason, provider) DO UPDATE SET at = now(), ended_at = NULL`

export type Suppressions = ReturnType<typeof createSuppressions>

/**
 * All functions throw Unavailable if PostgreSQL does not answer. An opt-out concerns every channel to a number, so the other
 * channels to the same address are asked too.
 */
export function createSuppressions(
  database: Database,
  suppressFor: () => SuppressFor,
  hashesOf: (channel: Channel, to: string) => readonly Buffer[],
) {
  const hashesOfAddress = (channel: Channel, to: string) =>
    channelsOfKind(addressKindOf(channel)).flatMap((each) => hashesOf(each, to))
  return {
    /** The suppressions of a recipient in force, newest first. */
    find(app: string, channel: Channel, to: string): Promise<Suppression[]> {
      const values = [app, hashesOfAddress(channel, to), suppressValues(suppressFor())]
      return database.query('suppression-find', findSql, values)
    },

    /** Ends all suppressions of a recipient in this app. */
    async end(app: string, channel: Channel, to: string): Promise<void> {
      await database.query('suppression-end', endSql, [app, hashesOfAddress(channel, to)])
    },
  }
}

/** A recipient has a hash for each channel and each SECRET in use, and may have the same suppression under several. */
const findSql = `
  SELECT s.reason, s.provider, max(s.at) AS since, max(${untilSql(3)}) AS until FROM suppression s
  WHERE s.recipient_hash = ANY ($2::bytea[]) AND s.app = $1 AND ${appliesSql(3)}
  GROUP BY s.reason, s.provider ORDER BY since DESC, s.reason, s.provider`

const endSql = `
  UPDATE suppression SET ended_at = now()
  WHERE recipient_hash = ANY ($2::bytea[]) AND app = $1 AND ended_at IS NULL`
