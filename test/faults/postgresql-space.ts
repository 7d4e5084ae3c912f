/** Faults of PostgreSQL's disk: it is full, and dead entries fill indexes that a snapshot elsewhere keeps. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { expect } from 'vitest'
import { createNoticeStore, type NoticeStore } from '../../src/notice/store.ts'
import { openDatabase } from '../../src/storage/database.ts'
import { admin, type Fleet, freshPhone, startFleet } from '../tools/fleet.ts'
import { canMountDisk } from '../tools/own-servers.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'
import { type Fault, strikeUnderLoad } from './fault.ts'
import { settleOne } from './ledger.ts'

const diskMb = canMountDisk() ? 160 : undefined

const f45: Fault = {
  id: 'F45',
  breaks: `the disk of PostgreSQL is full for half a minute${diskMb ? '' : ' (skipped: a small disk cannot be mounted here)'}`,
  holds: 'sends are 503, not ready names the reason, nothing is lost, all works when there is room',
  proves: 'I1, I2, I9, I25',
  async prove(lab) {
    if (!diskMb) return undefined
    const { report } = await strikeUnderLoad(
      lab,
      async (fleet) => {
        const filler = join(fleet.postgres.dataDir, 'filler')
        fill(filler)
        await eventually(
          async () => {
            const { status, body } = await fleet.send(freshPhone())
            expect({ status, code: body.code }).toEqual({ status: 503, code: 'unavailable' })
            const ready = await admin(fleet.apis[0], '/readyz')
            expect(ready.status).toBe(503)
            expect(await ready.text()).toMatch(/postgresql .*(disk|space|full)/)
          },
          { everyMs: 200 },
        )
        await sleep(lab.length(1_000, 30_000))
        rmSync(filler)
      },
      { kills: true, postgresDiskMb: diskMb },
    )
    expect(report.refused[503]).toBeGreaterThan(0)
    return report
  },
}

/** Writes zeros until there is no room. */
function fill(file: string): void {
  const mebibyte = Buffer.alloc(2 ** 20)
  for (const size of [mebibyte, mebibyte.subarray(0, 4_096)]) {
    try {
      for (;;) writeFileSync(file, size, { flag: 'a' })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
  }
}

/**
 * This many notices are made and end. In the indexes each leaves the entries of its claim, whose end was a little ahead.
 */
async function churn(fleet: Fleet, notices: number): Promise<void> {
  const perStep = 20_000
  for (let done = 0; done < notices; done += perStep) {
    // In one transaction, because workers must not see them open.
    await fleet.query(
      `DO $$ DECLARE earliest uuid := uuidv7(); BEGIN
         INSERT INTO notice (id, app, kind, channel, recipient_hash, template, locale, due_at, created_at, expires_at)
         SELECT uuidv7(), 'churn', kind, 'sms', '', 'welcome', 'en',
                now() + interval '15 s', now(), now() + interval '1 day'
         FROM generate_series(1, ${Math.min(perStep, notices - done) / 2}), unnest(ARRAY['captcha', 'notice']) AS kind;
         UPDATE notice SET state = 'failed', due_at = NULL, finished_at = now()
         WHERE id >= earliest AND app = 'churn';
       END $$`,
    )
  }
}

/** The median time from a send to its final state. */
async function sentWithinMs(fleet: Fleet, sends: number): Promise<number> {
  const took: number[] = []
  for (let left = sends; left > 0; left--) {
    const startMs = performance.now()
    const { status, body } = await fleet.send(freshPhone())
    expect(status).toBe(202)
    expect(await settleOne(fleet, body.id)).toBe('sent')
    took.push(performance.now() - startMs)
  }
  return took.sort((a, b) => a - b)[sends >> 1] as number
}

/** The median times of what reads open notices: a claim with all that follows, the reconciler, and the gauges. */
async function timesOf(fleet: Fleet, store: NoticeStore, sends: number) {
  const medianMs = async (work: () => Promise<unknown>) => {
    const took: number[] = []
    for (let left = 20; left > 0; left--) {
      const startMs = performance.now()
      // While the first search among dead entries takes long, both are unavailable.
      await eventually(() => work().then(() => true))
      took.push(performance.now() - startMs)
    }
    return took.sort((a, b) => a - b)[10] as number
  }
  return {
    sendToSent: await sentWithinMs(fleet, sends),
    reconciler: await medianMs(() => store.takeOverdue('captcha', 10, 5_000, 15_000)),
    gauges: await medianMs(store.oldestOpenSeconds),
  }
}

const gauge = /^postern_oldest_pending_seconds\{kind="captcha",process="worker"\} (\S+)$/m

const f42: Fault = {
  id: 'F42',
  breaks: 'a report keeps its snapshot while 1.5 million notices pass',
  holds: 'messages are as quick as before, gauges have values, and what no worker has is taken',
  proves: 'I1, I2, I28',
  async prove(lab) {
    const fleet = await startFleet()
    const database = openDatabase(fleet.postgres.url, {
      maxConnections: 2,
      plansOnce: true,
      onError: () => {},
    })
    releaseLater(() => database.close())
    const store = createNoticeStore(database, { claimTtlMs: 10_000 })
    const sends = lab.length(5, 20)
    const quiet = await timesOf(fleet, store, sends)
    const report = new pg.Client({ connectionString: fleet.postgres.url })
    await report.connect()
    releaseLater(() => report.end().catch(() => {}))
    await report.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM notice')
    await churn(fleet, lab.length(40_000, 1_500_000))

    const beside = await timesOf(fleet, store, sends)
    for (const [name, ms] of Object.entries(beside)) {
      // A search from the beginning goes on as long as it takes less than 200 ms. One that reads a million dead entries
      // takes longer.
      const mostMs = Math.max(2 * quiet[name as keyof typeof quiet], 250)
      expect({ name, isQuick: ms < mostMs, ms }).toEqual({ name, isQuick: true, ms })
    }
    const metrics = await (await admin(fleet.workers[0], '/metrics')).text()
    expect(Number(gauge.exec(metrics)?.[1])).toBeGreaterThanOrEqual(0)
    // A row whose job is gone: only the reconciler can find it.
    const { body } = await fleet.send(freshPhone())
    expect(await settleOne(fleet, body.id)).toBe('sent')
    await fleet.query(
      `INSERT INTO notice (id, app, kind, channel, recipient, recipient_hash, template, locale, due_at, created_at, expires_at)
       SELECT uuidv7(), app, 'notice', channel, recipient, recipient_hash, 'welcome', locale,
              now() - interval '10 s', now(), now() - interval '1 s'
       FROM notice WHERE id = $1`,
      [body.id],
    )
    await eventually(
      async () =>
        (await fleet.query(`SELECT 1 FROM notice WHERE app <> 'churn' AND state = 'expired'`))
          .length === 1,
      { withinMs: lab.length(60_000, 120_000), everyMs: 200 },
    )
    if (lab.isFull) console.log('F42: medians in ms: quiet', quiet, 'beside the report', beside)
    return undefined
  },
}

export const spaceFaults: readonly Fault[] = [f42, f45]
