/** The table `decision`. Only this file knows its SQL, apart from the partitions (src/upkeep). */
import type { ClientBase } from 'pg'
import { parseJson } from '../base/json.ts'
import type { Secrets } from '../crypto/secrets.ts'
import { fieldsThatAre } from '../rules/key-fields.ts'
import { isCheckPolicy } from '../rules/policies.ts'
import type { Fields } from '../rules/quota.ts'
import type { Database } from '../storage/database.ts'
import type { CheckResult, Noted, Outcome, Recipient, Refusal } from './decision.ts'

export interface RefusalEntry extends Refusal {
  at: Date
}

export interface CheckEntry {
  at: Date
  result: CheckResult
}

/** The decisions of one rule, or the checks of one result, in an hour. */
export interface DecisionCount {
  outcome: Outcome
  policy: string | null
  rule: string | null
  count: number
  /** How many of them are only counted: their recipients are not known. */
  unnamed: number
}

/** A decision with its recipient, for a replay. */
export interface DecisionRow {
  atMs: number
  app: string
  channel: string
  /** The first digits of the recipient's hash. */
  hash: string
  outcome: Outcome
  times: number
  policy: string | null
  rule: string | null
  isSolved: boolean | null
  noticeId: string | null
  fields: Fields | null
}

export type DecisionLog = ReturnType<typeof createDecisionLog>

/** Enough for the lists of a look-up, and for the locks of many addresses. */
const maxFound = 100
const hashLength = 8
const hashedNames = fieldsThatAre('hashed')
const hourMs = 3_600_000
const perPage = 5_000

export function createDecisionLog(
  database: Database,
  secrets: Secrets,
  /** At most this number of rows with a recipient is read to count an hour. */
  maxLookedAt = 100_000,
) {
  /** Personal values as short keyed hashes. `known` are the hashes of the same statement. */
  function hashedFields(fields: Fields | undefined, known: Map<string, string>) {
    if (!fields) return undefined
    const kept: Record<string, unknown> = {}
    for (const [name, value] of Object.entries(fields)) {
      if (name in columnFields || value === '') continue
      kept[name] = hashedNames.includes(name) ? hashOf(String(value), known) : value
    }
    return kept
  }

  function hashOf(value: string, known: Map<string, string>): string {
    const hash =
      known.get(value) ?? (secrets.subjectHashes(['decision', value])[0] ?? '').slice(0, hashLength)
    known.set(value, hash)
    return hash
  }

  function rowOf(
    { to, refusal, atMs, fields, ...noted }: Noted,
    nowMs: number,
    known: Map<string, string>,
  ) {
    const { channel } = noted
    const values =
      to !== undefined && refusal?.values
        ? secrets.sealText(JSON.stringify(refusal.values), contextOf(channel, to))
        : undefined
    return {
      ...noted,
      ageMs: nowMs - atMs,
      hash: to === undefined ? undefined : secrets.recipientHash(channel, to).toString('hex'),
      rulePolicy: refusal?.policy,
      rule: refusal?.rule,
      window: refusal?.window,
      retryAfterMs: refusal?.retryAfterMs,
      fields: hashedFields(fields, known),
      values,
    }
  }

  return {
    async write(noted: readonly Noted[]): Promise<void> {
      const [nowMs, known] = [performance.now(), new Map<string, string>()]
      const rows = JSON.stringify(noted.map((one) => rowOf(one, nowMs, known)))
      await database.query('decision-write', writeSql, [rows])
    },

    /** The latest refusals and checks of a recipient, newest first. Throws Unavailable. */
    async find({ app, channel, to }: Recipient) {
      const hashes = secrets.recipientHashes(channel, to)
      const found = await database.query<Found>('decision-find', findSql, [app, hashes, maxFound])
      const refusals: RefusalEntry[] = []
      const checks: CheckEntry[] = []
      for (const { at, outcome, asked, sealedValues, ...rule } of found) {
        if (outcome === 'passed' || outcome === 'mismatch' || outcome === 'gone') {
          checks.push({ at, result: outcome })
          continue
        }
        const isOfCheck = isCheckPolicy(asked)
        const values = secrets.unsealText(sealedValues ?? '', contextOf(channel, to))
        refusals.push({
          at,
          ...rule,
          ...(outcome === 'challenged' && { challenge: true }),
          ...(outcome === 'locked' && { lockBegan: true }),
          ...(isOfCheck && { isOfCheck: true }),
          values: values === undefined ? undefined : (parseJson(values) as string[]),
        })
        if (isOfCheck && outcome !== 'locked') checks.push({ at, result: 'refused' })
      }
      return { refusals, checks }
    },

    /** Returns the apps that have refused or checked this recipient, out of `apps`. */
    async appsOf(hashes: readonly Buffer[], apps: readonly string[]): Promise<string[]> {
      const rows = await database.query<{ app: string }>('decision-apps', appsSql, [hashes, apps])
      return rows.map(({ app }) => app)
    },

    /**
     * Counts the hour that begins at `fromMs`, for these apps; for every app if `apps` is undefined. In an hour with more
     * rows than `maxLookedAt`, the counts are a lower bound.
     */
    countHour(apps: readonly string[] | undefined, fromMs: number): Promise<DecisionCount[]> {
      const values = [new Date(fromMs), new Date(fromMs + hourMs), apps ?? null, maxLookedAt]
      return database.query('decision-hour', hourSql, values)
    },
  }
}

/**
 * Begins to read the decisions of the last `sinceMs` for a replay, and those `beforeMs` before. If only a share of the
 * recipients was recorded, the others are left out. `unnamed`: refusals and checks since then that have no recipient.
 */
export async function beginReading(client: ClientBase, sinceMs: number, beforeMs: number) {
  const { rows } = await client.query(spanSql, [sinceMs, beforeMs])
  const { fromMs, share, unnamed } = rows[0] as Record<'fromMs' | 'share' | 'unnamed', number>
  async function* decisions(): AsyncGenerator<DecisionRow> {
    // Hashes are evenly distributed. In a share, they begin with as many zero bits.
    const below = Buffer.alloc(4)
    if (share > 0) below.writeUInt32BE(2 ** (32 - share))
    // The caller may need seconds for a page, and the connection's own limit is for statements that follow each other.
    await client.query(`BEGIN; SET LOCAL idle_in_transaction_session_timeout = '10min'`)
    await client.query(readSql, [new Date(fromMs - beforeMs), share > 0 ? below : null])
    for (let page: DecisionRow[] | undefined; page?.length !== 0; ) {
      page = (await client.query<DecisionRow>(`FETCH ${perPage} FROM decisions`)).rows
      yield* page
    }
    await client.query('COMMIT')
  }
  return { fromMs, oneOf: 2 ** share, unnamed, decisions: decisions() }
}

const contextOf = (channel: string, to: string) => `decision ${channel} ${to}`

/** Fields with a column, and the price, which a replay calculates anew. */
const columnFields = { app: 0, channel: 0, to: 0, price: 0 }

interface Found {
  at: Date
  outcome: Outcome
  policy: string
  rule: string
  window: string
  retryAfterMs: number
  /** The policy of the limit check. */
  asked: string
  sealedValues: string | null
}

const writeSql = `
  INSERT INTO decision (at, app, channel, outcome, times, recipient_hash, policy, rule_policy, rule, rule_window,
                        retry_after_ms, is_solved, notice_id, fields, sealed_values, share)
  SELECT now() - "ageMs" * interval '1 millisecond', app, channel, outcome, times, decode(hash, 'hex'), policy,
         "rulePolicy", rule, "window", "retryAfterMs", "isSolved", "noticeId", fields, "values", coalesce(share, 0)
  FROM jsonb_to_recordset($1::jsonb) AS new ("ageMs" float8, app text, channel text, outcome text, times int,
    hash text, policy text, "rulePolicy" text, rule text, "window" text, "retryAfterMs" float8, "isSolved" boolean,
    "noticeId" uuid, fields jsonb, "values" text, share int)`

/** Outcomes of a look-up. A later version may write others. */
const shown = 'refused,challenged,locked,passed,mismatch,gone'

/** For each hash, the index has the latest rows at its end. */
const findSql = `
  SELECT at, outcome, policy AS asked, rule_policy AS policy, rule, rule_window AS window,
         retry_after_ms AS "retryAfterMs", sealed_values AS "sealedValues"
  FROM unnest($2::bytea[]) AS named (hash), LATERAL (
    SELECT * FROM decision
    WHERE recipient_hash = named.hash AND app = $1 AND outcome = ANY ('{${shown}}')
    ORDER BY at DESC LIMIT $3) AS latest
  ORDER BY at DESC LIMIT $3`

const appsSql = `
  SELECT app FROM unnest($2::text[]) AS wanted (app)
  WHERE EXISTS (
    SELECT FROM unnest($1::bytea[]) AS named (hash), decision
    WHERE recipient_hash = named.hash AND decision.app = wanted.app AND outcome = ANY ('{${shown}}'))`

const hourSql = `
  SELECT outcome, coalesce(rule_policy, policy) AS policy, rule, sum(times)::float8 AS count,
         coalesce(sum(times) FILTER (WHERE recipient_hash IS NULL), 0)::float8 AS unnamed
  FROM (
    SELECT * FROM decision WHERE at >= $1 AND at < $2 AND recipient_hash IS NULL
    UNION ALL (
      SELECT * FROM decision WHERE at >= $1 AND at < $2 AND recipient_hash IS NOT NULL ORDER BY at DESC LIMIT $4)
  ) AS looked
  WHERE $3::text[] IS NULL OR app = ANY($3)
  GROUP BY 1, 2, 3`

const spanSql = `
  SELECT floor(extract(epoch FROM now()) * 1000 - $1)::float8 AS "fromMs", coalesce(max(share), 0) AS share,
         coalesce(sum(times) FILTER (
           WHERE recipient_hash IS NULL AND outcome <> 'admitted' AND at >= now() - $1 * interval '1 millisecond'
         ), 0)::float8 AS unnamed
  FROM decision WHERE at >= now() - ($1 + $2) * interval '1 millisecond'`

const readSql = `
  DECLARE decisions CURSOR FOR
  SELECT extract(epoch FROM at)::float8 * 1000 AS "atMs", app, channel, substr(encode(recipient_hash, 'hex'), 1, 8) AS hash,
         outcome, times, policy, rule, is_solved AS "isSolved", notice_id AS "noticeId", fields
  FROM decision
  WHERE at >= $1 AND recipient_hash IS NOT NULL AND ($2::bytea IS NULL OR recipient_hash < $2)
  ORDER BY at`
