/**
 * Opt-outs by the words of persons: STOP, and START for the way back. They name a number and no message. Four questions
 * follow, with these answers:
 *
 * - Which number? SMSCs write numbers with and without a country code. The digits as an international number count first, if
 *   this provider has sent a message to it. Otherwise it is the national number with the latest message.
 * - Which app? Each app that has sent to the number by this provider. If none has, every app: the person wants no messages
 *   of this sender.
 * - Which channels? Every channel of this provider to the number.
 * - Until when? As each suppression (suppressions.ts). START ends it earlier.
 */

import type { Channel } from '../base/channel.ts'
import { everyApp } from '../base/names.ts'
import type { OptOut } from '../base/opt-out.ts'
import { addressKindOf, channelsOfKind } from '../recipient/channels.ts'
import { numbersMeantBy } from '../recipient/phone-address.ts'
import type { Database } from '../storage/database.ts'
import type { NoticeMetrics } from './metrics.ts'

/** The words come by SMS. A number has a hash for each channel. */
const channelsToNumber = channelsOfKind(addressKindOf('sms'))

export function createOptOuts(deps: {
  database: Database
  metrics: NoticeMetrics
  /** The keyed hashes of a recipient, by each secret in use. */
  hashesOf: (channel: Channel, to: string) => readonly Buffer[]
}) {
  const { database, metrics, hashesOf } = deps

  /** The hashes of the number, and the apps that have sent to it. Undefined if there is no such number. */
  async function find(provider: string, written: string) {
    const { numbers, isFirstSure } = numbersMeantBy(written)
    const candidates = numbers.flatMap((to, nth) =>
      channelsToNumber.flatMap((channel) => hashesOf(channel, to)).map((hash) => ({ hash, nth })),
    )
    const rows = await database.query<{ app: string; nth: number }>('opt-out-find', findSql, [
      candidates.map(({ hash }) => hash),
      candidates.map(({ nth }) => nth),
      provider,
    ])
    const [sent] = rows
    if (!sent && !isFirstSure) return undefined
    const nth = sent?.nth ?? 0
    const hashes = candidates.filter((one) => one.nth === nth).map(({ hash }) => hash)
    return { hashes, apps: sent ? rows.map(({ app }) => app) : undefined }
  }

  return {
    /** Throws Unavailable if PostgreSQL does not answer; then the provider must send the word again. */
    async take(provider: string, { number, isOut }: OptOut): Promise<void> {
      const found = await find(provider, number)
      if (!found) return metrics.receipts.inc({ provider, result: 'unmatched' })
      const { hashes, apps } = found
      if (isOut) {
        await database.query('opt-out', outSql, [hashes, apps ?? null, provider, everyApp])
        metrics.suppressions.inc({ provider, reason: 'opted_out' })
      } else await database.query('opt-in', inSql, [hashes, provider])
      metrics.receipts.inc({ provider, result: isOut ? 'opted_out' : 'opted_in' })
    },
  }
}

/** The apps that have sent by this provider to the most probable number. */
const findSql = `
  WITH sent AS (
    SELECT n.app, n.id, meant.nth FROM unnest($1::bytea[], $2::int[]) AS meant (hash, nth)
    JOIN notice n ON n.recipient_hash = meant.hash
    WHERE n.provider = $3
  )
  SELECT DISTINCT app, nth FROM sent WHERE nth = (SELECT nth FROM sent ORDER BY nth = 0 DESC, id DESC LIMIT 1)`

const outSql = `
  INSERT INTO suppression (app, recipient_hash, reason, provider)
  SELECT DISTINCT app, hash, 'opted_out', $3 FROM unnest($1::bytea[]) AS hash, (
    SELECT unnest($2::text[]) AS app
    UNION SELECT app FROM api_key WHERE $2::text[] IS NULL AND app <> $4
    UNION SELECT app FROM (SELECT app FROM notice WHERE $2::text[] IS NULL ORDER BY id DESC LIMIT 1000) AS latest) AS concerned
  ON CONFLICT (recipient_hash, app, reason, provider) DO UPDATE SET at = now(), ended_at = NULL`

const inSql = `
  UPDATE suppression SET ended_at = now()
  WHERE recipient_hash = ANY ($1::bytea[]) AND reason = 'opted_out' AND provider = $2 AND ended_at IS NULL`
