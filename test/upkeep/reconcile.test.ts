import type { Pool } from 'pg'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import type { SendJob } from '../../src/notice/job.ts'
import { createNoticeStore, type NoticeStore } from '../../src/notice/store.ts'
import { type ReconcilerDeps, startReconciler } from '../../src/upkeep/reconcile.ts'
import { databaseAt, moveDatabaseClock, testDatabase } from '../tools/database.ts'
import { testMetrics } from '../tools/metrics.ts'
import { insertNotices, type NoticeRow, newNotice } from '../tools/notices.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const log = createLog({ level: 'silent', process: 'test' })
/** A test waits for the effect of a pass, not for its time. */
const everyMs = 100

/** A reconciler over the table of a database, with some calls of its store replaced. */
function startOver(
  url: string,
  replaced: Partial<NoticeStore> = {},
  deps: Partial<ReconcilerDeps> = {},
) {
  const database = databaseAt(url, 2)
  const store = createNoticeStore(database, { claimTtlMs: 10_000 })
  const queued: string[] = []
  const reconciler = startReconciler({
    store: { ...store, ...replaced },
    producer: {
      add: async ({ id, channel }: SendJob) => {
        if (channel === 'email') throw new Error('the shard is away')
        queued.push(id)
      },
      isBulkLong: async () => false,
    } as never,
    sweepReceipts: async () => {},
    metrics: testMetrics(),
    log,
    everyMs,
    ...deps,
  })
  releaseLater(() => reconciler.stop())
  return { queued }
}

async function fail(): Promise<never> {
  throw new Error('too many open notices')
}

async function insertOverdue(
  pool: Pool,
  count: number,
  kind = 'notice',
  seconds = 60,
  channel = 'sms',
) {
  const row = { kind, channel, due_at: new Date(Date.now() - seconds * 1_000) }
  const ids = await insertNotices(pool, Array<NoticeRow>(count).fill(row))
  return ids as [string, ...string[]]
}

test('a notice that has been due for less than 5 s is left to the job that carries it', async () => {
  const testing = await testDatabase()
  const nowMs = Date.UTC(2026, 10, 21)
  await moveDatabaseClock(testing, `to_timestamp(${nowMs / 1_000})`)
  async function due(agoMs: number): Promise<string> {
    const due_at = new Date(nowMs - agoMs)
    const row = { id: newId(nowMs), due_at, created_at: due_at, expires_at: due_at }
    const [id = ''] = await insertNotices(testing.pool, [row])
    return id
  }
  for (const agoMs of [4_999, 0, -60_000]) await due(agoMs)
  const id = await due(5_001)
  startOver(testing.url)
  // One statement takes all, and its answer may come too late.
  const taken = await eventually(async () => {
    const { rows } = await testing.pool.query('SELECT id FROM notice WHERE due_at <> created_at')
    return rows.length > 0 && rows
  })
  expect(taken).toEqual([{ id }])
})

test.each<[string, Partial<ReconcilerDeps>, Partial<NoticeStore>]>([
  ['early receipts', { sweepReceipts: fail }, {}],
  ['unanswered codes', {}, { countUnanswered: fail }],
])('%s cannot be read: notices are still put back on the queue', async (_, deps, replaced) => {
  const { url, pool } = await testDatabase()
  const [id] = await insertOverdue(pool, 1)
  const { queued } = startOver(url, replaced, deps)
  await eventually(() => queued.includes(id))
})

test('the queue of one channel is away: notices of the other channel and kind are queued again, and the failure is counted', async () => {
  const { url, pool } = await testDatabase()
  const failures: unknown[] = []
  const onBackgroundFailed = (task: string) => failures.push(task)
  const failing = createLog({ level: 'silent', process: 'test', onBackgroundFailed })
  const [code] = await insertOverdue(pool, 1, 'captcha')
  await insertOverdue(pool, 1, 'captcha', 60, 'email')
  const [bulk] = await insertOverdue(pool, 1)
  const { queued } = startOver(url, {}, { log: failing })
  await eventually(() => queued.includes(bulk) && queued.includes(code))
  expect(failures).toContain('requeue')
})

test('more bulk notices are overdue than a pass takes: the first pass queues a code too, although they have waited longer', async () => {
  const { url, pool } = await testDatabase()
  await insertOverdue(pool, 3_000)
  const [code] = await insertOverdue(pool, 1, 'captcha', 6)
  const { queued } = startOver(url)
  await eventually(() => queued.includes(code))
  expect(queued.indexOf(code)).toBeLessThanOrEqual(1_000)
})

test('bulk notices cannot be searched: overdue codes are queued again', async () => {
  const { url, pool } = await testDatabase()
  const { takeOverdue } = createNoticeStore(databaseAt(url, 1), { claimTtlMs: 10_000 })
  const [code] = await insertOverdue(pool, 1, 'captcha')
  const { queued } = startOver(url, {
    takeOverdue: (kind, ...rest) => (kind === 'captcha' ? takeOverdue(kind, ...rest) : fail()),
  })
  await eventually(() => queued.includes(code))
})

test('many bulk notices wait for a worker: a pass queues few of them again, and all overdue codes', async () => {
  const { url } = await testDatabase()
  const limits = new Set<string>()
  const takeOverdue = async (kind: string, limit: number) => {
    limits.add(`${kind} ${limit}`)
    return []
  }
  const producer = { isBulkLong: async () => true } as never
  startOver(url, { takeOverdue }, { everyMs: 1, producer })
  await eventually(() => limits.size === 4)
  expect([...limits].sort()).toEqual(['captcha 0', 'captcha 1000', 'notice 0', 'notice 50'])
})

test('a read fails: the reads after it take no notice until a pass later. A kind that fails each time does not stop the other', async () => {
  const { url } = await testDatabase()
  /** The reads of each pass, and which of them fail. */
  const reads: string[] = []
  const failing = ['captcha 4', 'notice 7', 'notice 8', 'notice 9']
  const store = {
    takeOverdue: async (kind: string, limit: number) => {
      const pass = reads.filter((read) => read.startsWith(kind)).length
      reads.push(`${kind} ${limit}`)
      if (failing.includes(`${kind} ${pass}`)) throw new Error('no answer')
      return []
    },
  }
  startOver(url, store, { everyMs: 1 })
  await eventually(() => reads.length >= 22)
  const limits = (kind: string) => reads.flatMap((read) => read.match(`${kind} (\\d+)`)?.[1] ?? [])
  const [none, all] = ['0', '1000']
  // Passes: start, 3 quiet, codes fail, then bulk fails three times.
  expect(limits('captcha').slice(0, 11)).toEqual([
    none,
    all,
    all,
    all,
    all,
    none,
    all,
    all,
    none,
    all,
    all,
  ])
  expect(limits('notice').slice(0, 11)).toEqual([
    none,
    all,
    all,
    all,
    none,
    none,
    all,
    all,
    none,
    none,
    none,
  ])
})

test('four reconcilers: each overdue notice is queued exactly once, however often they look (I11)', async () => {
  const { url, pool } = await testDatabase()
  const database = databaseAt(url, 8)
  const store = createNoticeStore(database, { claimTtlMs: 10_000 })
  const ids = Array.from({ length: 300 }, () => newId())
  await Promise.all(ids.map((id) => store.insert(newNotice({ id }))))
  await pool.query(`UPDATE notice SET due_at = now() - interval '1 minute'`)

  const queued: string[] = []
  const add = async ({ id }: { id: string }) => {
    queued.push(id)
  }
  const metrics = testMetrics()
  const copies = [1, 2, 3, 4].map(() =>
    startReconciler({
      store,
      producer: { add, isBulkLong: async () => false } as never,
      sweepReceipts: async () => {},
      metrics,
      log,
      everyMs,
    }),
  )
  releaseLater(() => Promise.all(copies.map((copy) => copy.stop())))
  await eventually(() => queued.length >= ids.length)
  await Promise.all(copies.map((copy) => copy.stop()))
  expect([...queued].sort()).toEqual([...ids].sort())
  const { values } = await metrics.reconciled.get()
  expect(values[0]?.value).toBe(300)
})

describe('after PostgreSQL was away every claim looks lost, and those who hold them need time to write', () => {
  afterEach(() => void vi.useRealTimers())

  /** A reconciler over a table that records each question for overdue notices, and fails when the test wants it. */
  function start() {
    const metrics = testMetrics()
    vi.useFakeTimers()
    const table = { isAway: false, looks: 0, takes: 0 }
    const reconciler = startReconciler({
      store: {
        async takeOverdue(kind: string, limit: number) {
          if (kind === 'captcha') table.looks++
          if (table.isAway) throw new Error('away')
          if (kind === 'captcha' && limit > 0) table.takes++
          return []
        },
        countUnanswered: async () => {},
      } as never,
      producer: { isBulkLong: async () => false } as never,
      sweepReceipts: async () => {},
      metrics,
      log,
    })
    releaseLater(() => reconciler.stop())
    /** Idle connections have timers too. */
    async function nextLook(): Promise<void> {
      const { looks } = table
      while (table.looks === looks) await vi.advanceTimersByTimeAsync(50)
    }
    return { table, nextLook }
  }

  test('a process that has just started: its first look takes nothing, the second does (F30)', async () => {
    const { table, nextLook } = start()
    await nextLook()
    expect(table.takes).toBe(0)
    await nextLook()
    expect(table.takes).toBe(1)
  })

  test('a look that failed: the first good one takes nothing, the next does (F12)', async () => {
    const { table, nextLook } = start()
    await nextLook()
    await nextLook()
    table.isAway = true
    await nextLook()
    table.isAway = false
    await nextLook()
    expect(table.takes).toBe(1)
    await nextLook()
    expect(table.takes).toBe(2)
  })
})
