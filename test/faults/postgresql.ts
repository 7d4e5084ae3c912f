/** Faults of PostgreSQL: gone, silent, slow, and without free connections. */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { expect } from 'vitest'
import { moveDatabaseClock } from '../tools/database.ts'
import { type Fleet, freshPhone, startFleet } from '../tools/fleet.ts'
import { eventually } from '../tools/wait.ts'
import {
  answersWithinMs,
  expectAllWorks,
  expectUnavailable,
  type Fault,
  type Lab,
  strikeUnderLoad,
} from './fault.ts'
import { type Report, sendAtRate, settle, settleOne } from './ledger.ts'

async function outage(
  { postgres }: Fleet,
  lab: Lab,
  how: 'stopped' | 'frozen',
  during = async () => {},
): Promise<void> {
  const untilMs = performance.now() + lab.length(2_000, 20_000)
  if (how === 'stopped') await postgres.stop()
  else postgres.freeze()
  try {
    await during()
    await sleep(Math.max(0, untilMs - performance.now()))
  } finally {
    if (how === 'stopped') await postgres.start()
    else postgres.thaw()
  }
}

/** One outage after the other under one load. The first sends after an outage are under way when the next begins. */
async function proveOutages(lab: Lab, hows: readonly ('stopped' | 'frozen')[]) {
  const { report, p99Ms } = await strikeUnderLoad(
    lab,
    async (fleet) => {
      // Sends are under way when PostgreSQL stops, so outcomes wait to be written.
      fleet.farEnd.behave = async () => {
        await sleep(500)
        return { status: 200 }
      }
      for (const how of hows) {
        const calls = fleet.farEnd.calls.size
        await eventually(() => fleet.farEnd.calls.size > calls)
        await sleep(500)
        const to = freshPhone()
        await outage(fleet, lab, how, async () => {
          await expectUnavailable(fleet, lab)
          expect((await fleet.send(to)).status).toBe(503)
          const check = await fleet.post('/v1/captchas/check', { channel: 'sms', to, code: '0000' })
          expect(check.status).toBe(410)
        })
        const status = await eventually(
          async () => {
            const reply = await fleet.send(to)
            return reply.status !== 503 && reply.status
          },
          { everyMs: 100 },
        )
        // This number may get one code a minute. If a 503 had kept the use, this would be 429.
        expect(status).toBe(202)
      }
    },
    { kills: true },
  )
  expect(report.refused[503]).toBeGreaterThan(0)
  expect(p99Ms).toBeLessThan(answersWithinMs(lab))
  expect(report.final).toEqual({ sent: report.accepted })
  return report
}

const f12: Fault = {
  id: 'F12',
  breaks: 'PostgreSQL stopped, then frozen, for 20 s while messages are on their way',
  holds:
    'sends are 503 within 2.5 s and give their quota back, checks go on, outcomes are written later and nothing is sent again',
  proves: 'I1, I2, I8, I9',
  strike: (fleet, lab) => outage(fleet, lab, lab.pick(['stopped', 'frozen'] as const)),
  prove: (lab) => proveOutages(lab, ['stopped', 'frozen']),
}

const f13: Fault = {
  id: 'F13',
  breaks: 'PostgreSQL slow, then every statement waiting for a lock until the pool is used up',
  holds: 'slow is accepted or 503 within 2.5 s, never lost; afterwards all works',
  proves: 'I1, I2, I9',
  async prove(lab) {
    const { fleet, report, p99Ms } = await strikeUnderLoad(
      lab,
      async ({ network }) => {
        for (const delayMs of [100, 400]) {
          network?.forward(delayMs)
          await sleep(lab.length(1_500, 10_000))
        }
        network?.forward()
      },
      { proxied: true, kills: true, mayDouble: true },
    )
    expect(p99Ms).toBeLessThan(answersWithinMs(lab))

    const client = new pg.Client({ connectionString: fleet.postgres.url })
    await client.connect()
    try {
      await client.query('BEGIN; LOCK TABLE notice IN ACCESS EXCLUSIVE MODE')
      await expectUnavailable(fleet, lab, 100)
    } finally {
      await client.end()
    }
    await expectAllWorks(fleet)
    return report
  },
}

const i24: Fault = {
  id: 'I24',
  breaks: 'API and worker processes whose clocks are an hour behind, two hours and a year ahead',
  holds:
    "ids and times are PostgreSQL's, nothing is sent before it is wanted or long after, no row and no recipient goes",
  proves: 'I24',
  async prove() {
    const fleet = await startFleet({ apis: 0, workers: 0 })
    const hourMs = 3_600_000
    let waiting = 0
    for (const shiftMs of [-hourMs, 2 * hourMs, 365 * 24 * hourMs]) {
      const shifted = {
        env: {
          NODE_OPTIONS: `--import=${new URL('./shift-clock.ts', import.meta.url)}`,
          CLOCK_SHIFT_MS: String(shiftMs),
        },
      }
      const api = await fleet.startApi(shifted)
      await eventually(async () => (await fleet.query('SELECT 1 FROM api_key')).length > 0)
      await fleet.query(`DELETE FROM retention`)
      const sends = await Promise.all(
        Array.from({ length: 5 }, () => fleet.send(freshPhone(), api)),
      )
      expect(sends.map(({ status }) => status)).toEqual(Array(5).fill(202))
      const sendAt = new Date(Date.now() + hourMs).toISOString()
      const notice = {
        channel: 'sms',
        to: freshPhone(),
        template: 'welcome',
        params: { name: 'A' },
      }
      const later = await fleet.post('/v1/notices', { ...notice, sendAt }, api)
      expect(later.status).toBe(202)
      const [{ rows, off } = { rows: 0, off: 0 }] = await fleet.query<{
        rows: number
        off: number
      }>(
        `SELECT count(*)::int AS rows, max(abs(extract(epoch FROM created_at) * 1000 - id_ms))::float8 AS off
         FROM notice, LATERAL (
           SELECT ('x' || translate(left(id::text, 13), '-', ''))::bit(48)::bigint AS id_ms) AS made`,
      )
      expect(off).toBeLessThan(60_000)

      const worker = await fleet.startWorker(shifted)
      for (const { body } of sends) expect(await settleOne(fleet, body.id)).toBe('sent')
      // Written when a pass has read every row.
      await eventually(async () => (await fleet.query(`SELECT 1 FROM retention`)).length > 0)
      const [kept] = await fleet.query(
        `SELECT count(*)::int AS rows, count(recipient)::int AS recipients, 
                count(*) FILTER (WHERE send_at IS NOT NULL AND state = 'pending')::int AS waiting
         FROM notice`,
      )
      waiting += 1
      expect(kept).toEqual({ rows, recipients: rows, waiting })
      // A queue goes by the clocks of its workers.
      const soon = { ...notice, sendAt: new Date(Date.now() + 2_000).toISOString() }
      const { body } = await fleet.post('/v1/notices', { ...soon, to: freshPhone() }, api)
      expect(await settleOne(fleet, body.id)).toBe('sent')
      await worker.terminate()
      await api.terminate()
    }
    const weeks = await partitionsOf(fleet)
    expect(weeks.filter((name) => !/^notice_(20\d\d_\d\d_\d\d|default)$/.test(name))).toEqual([])
    expect(weeks.length).toBeLessThanOrEqual(6)
    return undefined
  },
}

async function partitionsOf(fleet: Fleet): Promise<string[]> {
  const rows = await fleet.query<{ name: string }>(
    `SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'notice'::regclass`,
  )
  return rows.map(({ name }) => name)
}

/**
 * For each statement that changes a table: the rows of the default partition that its transaction has read so far,
 * and whether it holds a lock that stops sends.
 */
const watchStatements = `
  CREATE TABLE statement_seen (command text, stops_sends boolean, rows_read bigint);
  CREATE FUNCTION see_statement() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO statement_seen SELECT tg_tag,
      EXISTS (SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND granted
              AND relation IN ('notice'::regclass, 'notice_default'::regclass)
              AND mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')),
      coalesce((SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables
                WHERE relname = 'notice_default'), 0);
    -- These counts are those of all transactions since they were last handed on.
    PERFORM pg_stat_force_next_flush();
  END $$;
  CREATE EVENT TRIGGER see_statement ON ddl_command_end EXECUTE FUNCTION see_statement()`

/** At most a million rows at a time, in the order of ids and hashes, so that the indexes grow only at their end. */
const fill = (from: number, until: number, rows: number) => `
  INSERT INTO notice_default (id, app, kind, channel, recipient, recipient_hash, template, locale, state,
                              created_at, expires_at, sent_at, finished_at)
  SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '70008' ||
          lpad(to_hex(n), 15, '0'))::uuid,
         'default', 'notice', 'sms', '+8613800138000', decode(lpad(to_hex(n), 32, '0'), 'hex'), 'welcome', 'en', 'sent',
         at, at, at, at
  FROM (SELECT now() - interval '1 day' AS first OFFSET 0) AS clock,
       generate_series(${from + 1}, ${until}) AS n,
       LATERAL (SELECT first + n * interval '1 hour' / ${rows} AS at) AS made`

const f33: Fault = {
  id: 'F33',
  breaks:
    '7,000,000 rows in the default partition, and a month turns, and then all of them are old',
  holds:
    'sends go on, partitions are made, no statement under a lock that stops sends looks at rows, old rows go',
  proves: 'I9, I24',
  async prove(lab) {
    const rows = lab.length(5_000, 7_000_000)
    const fleet = await startFleet({ workers: 0 })
    // Before the load makes its connections, so that they follow each change of the clock.
    await moveClock(fleet, '0 months')
    await fleet.apis.pop()?.terminate()
    await fleet.startApi()
    for (let from = 0; from < rows; from += 1_000_000) {
      await fleet.query(fill(from, Math.min(rows, from + 1_000_000), rows))
    }
    await fleet.query(watchStatements)

    let slowestMs = 0
    /**
     * A worker that starts does a pass at once. Sends go on until the awaited work is done. Then it ends, so that the
     * next worker finds no other at work.
     */
    async function passUnderLoad(isDone: () => Promise<boolean>): Promise<Report> {
      let isOver = false
      const load = sendAtRate(fleet, lab.length(20, 50), () => isOver)
      const worker = await fleet.startWorker()
      try {
        await eventually(isDone, {
          withinMs: lab.length(30_000, 1_200_000),
          everyMs: lab.length(50, 2_000),
        })
      } finally {
        isOver = true
      }
      const ledger = await load
      // On a busy machine a deadline of the limiter may pass. A lock would fail all sends of a second.
      expect(ledger.count(202)).toBeGreaterThan(ledger.entries.length * 0.9)
      slowestMs = Math.max(slowestMs, ...ledger.entries.map(({ tookMs }) => tookMs))
      const report = await settle(fleet, ledger)
      expect({ lost: report.lost, doubled: report.doubled }).toEqual({ lost: 0, doubled: 0 })
      await worker.terminate()
      expect(worker.output()).not.toContain('retention')
      return report
    }

    await passUnderLoad(async () => (await partitionsOf(fleet)).length >= 2)
    const made = await partitionsOf(fleet)
    await moveClock(fleet, '1 month')
    await passUnderLoad(async () => (await partitionsOf(fleet)).length > made.length)
    // All rows are older than `retention.rows`.
    await moveClock(fleet, '1 year')
    const oldOne = `SELECT 1 FROM notice_default WHERE template = 'welcome' LIMIT 1`
    const report = await passUnderLoad(async () => (await fleet.query(oldOne)).length === 0)

    const seen = await fleet.query<{ command: string; stopsSends: boolean; rowsRead: number }>(
      `SELECT command, stops_sends AS "stopsSends", rows_read::float8 AS "rowsRead" FROM statement_seen`,
    )
    const underLock = seen.filter(({ stopsSends }) => stopsSends)
    expect(underLock.length).toBeGreaterThan(0)
    // A few rows that an earlier statement found by an index are no scan of the table.
    expect(underLock.filter(({ rowsRead }) => rowsRead > 100)).toEqual([])
    // The statement that makes the scan unnecessary has read all rows, beside the sends.
    expect(Math.max(...seen.map(({ rowsRead }) => rowsRead))).toBeGreaterThanOrEqual(rows)
    if (lab.isFull) console.log('F33: the slowest send took', Math.round(slowestMs), 'ms')
    return report
  },
}

/** The clock of PostgreSQL, for every new connection. */
async function moveClock(fleet: Fleet, ahead: string): Promise<void> {
  const pool = { query: (sql: string) => fleet.query(sql) } as unknown as pg.Pool
  await moveDatabaseClock({ pool }, `pg_catalog.now() + interval '${ahead}'`)
}

const f30: Fault = {
  id: 'F30',
  breaks:
    'workers are started in the very second in which PostgreSQL returns, after claims have ended',
  holds: 'what the others sent meanwhile is written by them, and nothing is sent again',
  proves: 'I1, I8',
  async prove(lab) {
    // While PostgreSQL is away, twice the claim time after the time limit of a call and the grace of the reconciler
    // pass.
    const fleet = await startFleet({ proxied: true, policyFile: { delivery: { timeout: '3s' } } })
    let answer = () => {}
    const isAway = new Promise<void>((resolve) => {
      answer = resolve
    })
    fleet.farEnd.behave = async () => {
      await isAway
      return { status: 200 }
    }
    const posted = Promise.all(Array.from({ length: 80 }, () => fleet.send(freshPhone())))
    await eventually(() => fleet.farEnd.calls.size > 0, { everyMs: 5 })
    // While more messages arrive, and within the time of the first call.
    await sleep(300)
    fleet.network?.cut()
    answer()
    await sleep(lab.length(13_500, 20_000))
    fleet.network?.forward()
    await Promise.all([fleet.startWorker(), fleet.startWorker()])
    for (const { status, body } of await posted) {
      if (status === 202) expect(await settleOne(fleet, body.id, 40_000)).toBe('sent')
    }
    expect([...fleet.farEnd.taken.values()].filter((times) => times > 1)).toEqual([])
    expect(fleet.farEnd.taken.size).toBeGreaterThan(0)
    await expectAllWorks(fleet)
    return undefined
  },
}

export const postgresqlFaults: readonly Fault[] = [f12, f13, i24, f30, f33]
