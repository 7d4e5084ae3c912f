/**
 * Counts of the notices of one hour, for the console's first page. Ids begin with their time, so an hour is a range of the
 * primary key and needs no other index. At most `maxLookedAt` notices are read, so the cost of a statement has a
 * limit. In an hour with more notices the counts are a lower bound.
 */
import { idFloor } from '../base/ids.ts'
import type { Database } from '../storage/database.ts'

export const hourMs = 3_600_000

export interface ProviderCounts {
  /** The provider that accepted the notice, otherwise the provider of the last attempt. Empty without an attempt. */
  provider: string
  /** Accepted by the provider and not failed since. */
  sent: number
  /** Sent and confirmed by a receipt. */
  delivered: number
  /** Failed or expired. */
  failed: number
}

/** Number of notices by duration, in steps of about 9 %. See `medianDurationMs`. */
export type Durations = ReadonlyMap<number, number>

export interface HourCounts {
  providers: readonly ProviderCounts[]
  /** From the request, or from its `sendAt`, to the acceptance by the provider. */
  toProvider: Durations
  /** From the request, or from its `sendAt`, to the receipt. */
  toReceipt: Durations
  /** The hour had more notices than are read. */
  isCut: boolean
}

const maxLookedAt = 50_000
const stepsPerDoubling = 8

interface Row {
  provider: string | null
  providerStep: number | null
  receiptStep: number | null
  count: number
  sent: number
  delivered: number
  failed: number
  looked: number
}

export function createHourCounts(database: Database, limit = maxLookedAt) {
  return {
    /** Counts the hour that begins at `fromAtMs`, for these apps; for every app if `apps` is undefined. */
    async countHour(apps: readonly string[] | undefined, fromAtMs: number): Promise<HourCounts> {
      const range = [idFloor(fromAtMs), idFloor(fromAtMs + hourMs)]
      const values = [...range, limit, apps ?? null]
      const rows = await database.query<Row>('notice-hour', hourSql, values)
      const durations = (by: 'providerStep' | 'receiptStep') =>
        new Map(rows.flatMap((row) => (row[by] === null ? [] : [[row[by], row.count] as const])))
      return {
        providers: rows.flatMap(({ provider, sent, delivered, failed }) =>
          provider === null ? [] : [{ provider, sent, delivered, failed }],
        ),
        toProvider: durations('providerStep'),
        toReceipt: durations('receiptStep'),
        isCut: rows.some(({ looked }) => looked === limit),
      }
    },
  }
}

/** The median of all durations together, within 5 % or 1 ms; undefined if there are none. */
export function medianDurationMs(durations: readonly Durations[]): number | undefined {
  const counts = new Map<number, number>()
  for (const [step, count] of durations.flatMap((one) => [...one])) {
    counts.set(step, (counts.get(step) ?? 0) + count)
  }
  let left = [...counts.values()].reduce((sum, count) => sum + count, 0) / 2
  for (const [step, count] of [...counts].sort(([a], [b]) => a - b)) {
    left -= count
    if (left <= 0) return 2 ** (step / stepsPerDoubling)
  }
  return undefined
}

/** The step of a duration; null if the time `end` is null. Differences of clocks can make the duration negative. */
const stepOf = (end: string) => `
  CASE WHEN ${end} IS NOT NULL THEN
    round(${stepsPerDoubling} / ln(2::float8) * ln(greatest(1, 1000 * extract(epoch FROM ${end} - wanted_at)::float8)))::int
  END`

const hourSql = `
  WITH looked AS MATERIALIZED (
    SELECT app, state, sent_at, CASE state WHEN 'delivered' THEN finished_at END AS received_at,
           coalesce(send_at, created_at) AS wanted_at,
           coalesce(provider, attempts -> -1 ->> 'provider', '') AS provider
    FROM notice WHERE id >= $1::uuid AND id < $2::uuid ORDER BY id DESC LIMIT $3),
  measured AS (
    SELECT state, provider, ${stepOf('sent_at')} AS provider_step, ${stepOf('received_at')} AS receipt_step
    FROM looked WHERE $4::text[] IS NULL OR app = ANY($4))
  SELECT provider, provider_step AS "providerStep", receipt_step AS "receiptStep", count(*)::int,
         (count(*) FILTER (WHERE state IN ('sent', 'delivered')))::int AS sent,
         (count(*) FILTER (WHERE state = 'delivered'))::int AS delivered,
         (count(*) FILTER (WHERE state IN ('failed', 'expired')))::int AS failed,
         (SELECT count(*)::int FROM looked) AS looked
  FROM measured GROUP BY GROUPING SETS ((provider), (provider_step), (receipt_step))`
