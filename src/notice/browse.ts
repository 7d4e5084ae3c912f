/**
 * Pages of notices for operators across apps, and for searches without a recipient.
 *
 * No index covers all of these filters, and every further index would make sends slower. So a page reads a limited
 * number of the latest notices by their ids, and keeps those that match. It reports how far it came, and the next page
 * continues there. The cost is the same for every filter and any number of rows.
 */
import type { Database } from '../storage/database.ts'
import { isUntypedSql } from './conversions.ts'
import type { NoticeState } from './states.ts'

export interface BrowseFilter {
  /** Every app if absent. */
  apps?: readonly string[] | undefined
  state?: NoticeState | undefined
  kind?: string | undefined
  channel?: string | undefined
  scenes?: readonly string[] | undefined
  hasPassed?: boolean | undefined
  template?: string | undefined
  provider?: string | undefined
  /** Range of ids: `from` included, `before` not. */
  from: string
  before: string
  limit: number
  /** The most notices, of all apps, that are read for a page. */
  maxLookedAt?: number | undefined
}

export interface BrowsedNotice {
  id: string
  app: string
  kind: string
  channel: string
  recipient: string | null
  scene: string | null
  template: string
  state: NoticeState
  provider: string | null
  error: string | null
  createdAt: Date
}

export interface BrowsedPage {
  items: BrowsedNotice[]
  /** The number of notices that were read, if they did not fill the page. */
  lookedAt?: number
  /** `before` of the next page; undefined on the last page. */
  next?: string
}

export type Browse = ReturnType<typeof createBrowse>

const usualLookedAt = 20_000
const maxLatest = 1_000
const maxOfRecipient = 200

/** `apps`: undefined for every app. */
export function createBrowse(database: Database) {
  async function names(name: string, sql: string, values: readonly unknown[]): Promise<string[]> {
    const rows = await database.query<{ name: string }>(name, sql, values)
    return rows.map((row) => row.name)
  }

  return {
    /** A page of notices, newest first. */
    async browse(filter: BrowseFilter): Promise<BrowsedPage> {
      const { apps, state, kind, template, provider, channel, scenes, hasPassed } = filter
      const { from, before, limit, maxLookedAt = usualLookedAt } = filter
      const ofFilter = [apps, state, kind, template, provider, channel, scenes, hasPassed].map(
        (value) => value ?? null,
      )
      const values = [before, from, maxLookedAt, ...ofFilter, limit]
      type Row = BrowsedNotice & { looked: number | null; lastLooked: string | null }
      const rows = await database.query<Row>('notice-browse', browseSql, values)
      const items = rows.filter(({ id }) => id !== null)
      const { looked, lastLooked } = rows[0] ?? {}
      const next = items.length === limit ? items.at(-1)?.id : undefined
      if (typeof looked !== 'number') return { items, ...(next ? { next } : {}) }
      const isMore = looked === maxLookedAt && lastLooked
      return { items, lookedAt: looked, ...(isMore ? { next: lastLooked } : {}) }
    },

    findOfApps(apps: readonly string[] | undefined, id: string) {
      return database.read((prisma) =>
        prisma.notice.findFirst({ where: { id, ...(apps ? { app: { in: [...apps] } } : {}) } }),
      )
    },

    /** The apps that sent to a recipient lately, latest first. */
    appsOf: (recipientHashes: readonly Uint8Array[]) =>
      names('notice-apps-of', appsSql, [recipientHashes, maxOfRecipient]),

    /** The channels by which these apps sent to a recipient lately, latest first. */
    channelsOf: (apps: readonly string[] | undefined, recipientHashes: readonly Uint8Array[]) =>
      names('notice-channels-of', channelsSql, [recipientHashes, maxOfRecipient, apps ?? null]),

    latestApps: () => names('notice-latest-apps', latestAppsSql, [maxLatest]),

    /** Recipients of the latest notices that a provider took or rejected. */
    latestTaken(apps: readonly string[] | undefined) {
      type Taken = { channel: string; recipient: string; isRejected: boolean }
      return database.query<Taken>('notice-taken', takenSql, [maxLatest, apps ?? null])
    },

    /** The latest codes that passed or whose time has ended without that. */
    latestTyped(apps: readonly string[] | undefined) {
      type Typed = { channel: string; recipient: string; provider: string; isPassed: boolean }
      return database.query<Typed>('notice-typed', typedSql, [maxLatest, apps ?? null])
    },

    /** Counts of the latest notices by provider and state. */
    latestByProvider(apps: readonly string[] | undefined) {
      return database.query<{ provider: string; state: NoticeState; count: number }>(
        'notice-latest',
        latestSql,
        [maxLatest, apps ?? null],
      )
    },
  }
}

const browseSql = `
  WITH looked AS MATERIALIZED (
    SELECT id, app, kind, channel, recipient, scene, template, state, provider, error, created_at, code_end
    FROM notice WHERE id < $1::uuid AND id >= $2::uuid ORDER BY id DESC LIMIT $3),
  found AS (
    SELECT * FROM looked
    WHERE ($4::text[] IS NULL OR app = ANY($4)) AND ($5::text IS NULL OR state = $5)
      AND ($6::text IS NULL OR kind = $6) AND ($7::text IS NULL OR template = $7)
      AND ($8::text IS NULL OR provider = $8) AND ($9::text IS NULL OR channel = $9)
      AND ($10::text[] IS NULL OR scene = ANY($10))
      AND ($11::boolean IS NULL OR (code_end IS NOT DISTINCT FROM 'passed') = $11)
    ORDER BY id DESC LIMIT $12)
  -- What fills a page is found without going through the rest.
  SELECT facts.looked, facts."lastLooked", id, app, kind, channel, recipient, scene, template, state, provider,
         error, created_at AS "createdAt"
  FROM (SELECT CASE WHEN is_short THEN (SELECT count(*)::int FROM looked) END AS looked,
               CASE WHEN is_short THEN (SELECT id FROM looked ORDER BY id LIMIT 1) END AS "lastLooked"
        FROM (SELECT count(*) < $12 AS is_short FROM found) AS page) AS facts LEFT JOIN found ON true
  ORDER BY id DESC`

const appsSql = `
  SELECT app AS name FROM (
    SELECT app, id FROM notice WHERE recipient_hash = ANY($1) ORDER BY id DESC LIMIT $2) AS latest
  GROUP BY app ORDER BY max(id::text) DESC`

const channelsSql = `
  SELECT channel AS name FROM (
    SELECT app, channel, id FROM notice WHERE recipient_hash = ANY($1) ORDER BY id DESC LIMIT $2) AS latest
  WHERE $3::text[] IS NULL OR app = ANY($3) GROUP BY channel ORDER BY max(id::text) DESC`

const latestAppsSql = `
  SELECT DISTINCT app AS name FROM (SELECT app FROM notice ORDER BY id DESC LIMIT $1) AS latest ORDER BY name`

const takenSql = `
  SELECT channel, recipient, state = 'failed' AS "isRejected"
  FROM (SELECT app, channel, recipient, state, error FROM notice ORDER BY id DESC LIMIT $1) AS latest
  WHERE recipient IS NOT NULL AND ($2::text[] IS NULL OR app = ANY($2))
    AND (state IN ('sent', 'delivered') OR state = 'failed' AND error IN ('rejected', 'not_delivered'))`

const typedSql = `
  SELECT channel, recipient, provider, code_end IS NOT NULL AS "isPassed"
  FROM (SELECT * FROM notice ORDER BY id DESC LIMIT $1) AS latest
  WHERE kind = 'captcha' AND recipient IS NOT NULL AND provider IS NOT NULL AND sent_at IS NOT NULL
    AND (code_end = 'passed' OR expires_at < now() AND ${isUntypedSql})
    AND ($2::text[] IS NULL OR app = ANY($2))`

const latestSql = `
  SELECT provider, state, count(*)::int AS count
  FROM (SELECT app, provider, state FROM notice ORDER BY id DESC LIMIT $1) AS latest
  WHERE provider IS NOT NULL AND ($2::text[] IS NULL OR app = ANY($2)) GROUP BY provider, state`
