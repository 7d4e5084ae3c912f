import { expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import type { SendJob } from '../../src/notice/job.ts'
import { createNoticeStore } from '../../src/notice/store.ts'
import { startBringForward } from '../../src/upkeep/bring-forward.ts'
import { databaseAt, testDatabase } from '../tools/database.ts'
import { newWelcome } from '../tools/notices.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const hourMs = 3_600_000

/** A worker over a list of parked notices. `onAdd` is called for each that it brings forward. */
function open(parked: number, onAdd: (defer: () => void) => void, isBulkLong = () => false) {
  const deferred = new Set<string>()
  const limits: number[] = []
  let [at, failures] = [0, 0]
  const repetition = startBringForward({
    store: {
      async takeParked(limit, _beyondMs, _againInMs, from) {
        expect(from).toBe(at === 0 ? undefined : String(at))
        const count = Math.min(limit, parked - at)
        limits.push(limit)
        at += count
        const notices = Array.from({ length: count }, () => ({
          id: newId(),
          channel: 'sms' as const,
          kind: 'notice' as const,
        }))
        return { notices, latest: count > 0 ? String(at) : undefined, dueAt: `due ${at}` }
      },
      async deferredCount(ids, dueAt) {
        expect(dueAt).toBe(`due ${at}`)
        return ids.filter((id) => deferred.has(id)).length
      },
    },
    producer: {
      async add(job: SendJob) {
        expect(job.isOverdue).toBe(true)
        onAdd(() => deferred.add(job.id))
      },
      isBulkLong: async () => isBulkLong(),
    },
    log: createLog({ level: 'silent', process: 'test', onBackgroundFailed: () => failures++ }),
    everyMs: hourMs / 1_000,
    stepMs: 5,
  })
  releaseLater(() => repetition.stop())
  return { limits, taken: () => at, failures: () => failures, repetition }
}

test('nothing holds parked notices back any more: twice as many in each step, up to a bound, until none is left', async () => {
  const { limits, taken, failures, repetition } = open(9_000, () => {})
  await eventually(() => taken() === 9_000 && limits.length === 9)
  await repetition.stop()
  expect(failures()).toBe(0)
  expect(limits).toEqual([100, 200, 400, 800, 1_600, 2_000, 2_000, 2_000, 2_000])
})

test('the limit still holds: a hundred are deferred again, and the rest is left alone', async () => {
  const { limits, taken, repetition } = open(1_000_000, (defer) => defer())
  await eventually(() => taken() > 0)
  await new Promise((resolve) => setTimeout(resolve, 100))
  await repetition.stop()
  expect(limits).toEqual([100])
})

test('the limit admits some hundreds in a step: so many are taken, again and again', async () => {
  let [step, admitted] = [0, 0]
  const { limits, taken, repetition } = open(20_000, (defer) => {
    if (taken() !== step) admitted = 0
    step = taken()
    admitted++
    if (admitted > 400) defer()
  })
  await eventually(() => taken() === 20_000)
  await repetition.stop()
  expect(limits.slice(0, 9)).toEqual([100, 200, 400, 800, 1_600, 2_000, 1_000, 2_000, 1_000])
})

test('deferredCount: of the notices taken, those that any worker has deferred again', async () => {
  const { url, pool } = await testDatabase()
  const database = databaseAt(url, 2)
  const store = createNoticeStore(database, { claimTtlMs: 10_000 })
  const all = Array.from({ length: 5 }, newId)
  for (const id of all) await store.insert(newWelcome({ id, ttlMs: 24 * hourMs }))
  await pool.query(`UPDATE notice SET due_at = now() + interval '1 hour'`)
  const { notices, dueAt } = await store.takeParked(4, 60_000, 15_000)
  const ids = notices.map(({ id }) => id)
  expect(ids).toHaveLength(4)
  expect(await store.deferredCount(ids, dueAt)).toBe(0)
  const [soon, late, sent, claimed] = ids as [string, string, string, string]
  const outcome = { claims: 0, attempts: [] }
  await store.record({ ...outcome, id: soon, state: 'pending', retryInMs: 300 })
  await store.record({ ...outcome, id: late, state: 'pending', retryInMs: 3_600_000 })
  await store.claim({ id: claimed, claims: 0 })
  await store.claim({ id: sent, claims: 0 })
  await store.record({ ...outcome, id: sent, claims: 1, state: 'sent' })
  expect(await store.deferredCount(ids, dueAt)).toBe(2)
})

test('many bulk notices wait for a worker: none is taken until fewer wait', async () => {
  let asked = 0
  const { limits, repetition } = open(
    100,
    () => {},
    () => asked++ < 3,
  )
  await eventually(() => limits.length === 2)
  await repetition.stop()
  expect(asked).toBeGreaterThan(3)
})

test('takeParked: the earliest bulk notices that only a limit delays, each once, and in parts', async () => {
  const { url, pool } = await testDatabase()
  const database = databaseAt(url, 2)
  const store = createNoticeStore(database, { claimTtlMs: 10_000 })
  async function parked(inMs: number, facts: { kind?: 'captcha'; attempts?: string } = {}) {
    const id = newId()
    await store.insert(newWelcome({ id, kind: facts.kind ?? 'notice', ttlMs: 24 * hourMs }))
    await pool.query(
      `UPDATE notice SET due_at = now() + $2 * interval '1 millisecond', attempts = $3 WHERE id = $1`,
      [id, inMs, facts.attempts ?? '[]'],
    )
    return id
  }
  const outcome = (name: string) => JSON.stringify([{ provider: 'a', outcome: name }])
  const third = await parked(3_000_000, { attempts: outcome('throttled') })
  const first = await parked(1_000_000)
  const second = await parked(2_000_000)
  // Due times can be equal.
  await pool.query(
    'UPDATE notice SET due_at = (SELECT due_at FROM notice WHERE id = $2) WHERE id = $1',
    [third, second],
  )
  await parked(50_000)
  await parked(1_000_000, { kind: 'captcha' })
  await parked(1_000_000, { attempts: outcome('postponed') })
  await parked(1_000_000, { attempts: outcome('unknown') })
  const scheduled = await parked(1_000_000)
  await pool.query(`UPDATE notice SET send_at = now() + interval '1 hour' WHERE id = $1`, [
    scheduled,
  ])
  const ofNewer = await parked(1_000_000)
  await pool.query(`UPDATE notice SET channel = 'pigeon' WHERE id = $1`, [ofNewer])
  const claimed = await parked(0)
  const open = await store.findOpen(claimed)
  await store.claim({ id: claimed, claims: open?.claims ?? 0 })
  await pool.query(`UPDATE notice SET due_at = now() + interval '1 hour' WHERE id = $1`, [claimed])

  const one = await store.takeParked(2, 60_000, 15_000)
  const ofOne = one.notices.map(({ id }) => id)
  expect(ofOne).toHaveLength(2)
  expect(ofOne).toContain(first)
  expect(one.notices[0]).toMatchObject({ channel: 'sms', kind: 'notice' })
  const two = await store.takeParked(2, 60_000, 15_000, one.latest)
  expect([...ofOne, ...two.notices.map(({ id }) => id)].sort()).toEqual(
    [first, second, third].sort(),
  )
  expect(await store.takeParked(2, 60_000, 15_000, two.latest)).toEqual({
    notices: [],
    latest: undefined,
  })
  const { rows } = await pool.query(
    `SELECT count(*)::int AS soon FROM notice WHERE id = ANY($1) AND due_at < now() + interval '20 seconds'`,
    [[first, second, third]],
  )
  expect(rows).toEqual([{ soon: 3 }])
})
