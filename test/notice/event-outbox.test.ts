import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createEventOutbox } from '../../src/notice/event-outbox.ts'
import { databaseAt, testDatabase } from '../tools/database.ts'

const dayMs = 86_400_000
const leaseMs = 15_000

async function openStore() {
  const { url, pool } = await testDatabase()
  const database = databaseAt(url, 6)
  const store = createEventOutbox(database)
  const take = (limit = 100) => store.take(limit, leaseMs, dayMs)
  const rows = async () =>
    (
      await pool.query(
        `SELECT id, app, type, data, tries, (extract(epoch FROM due_at - now()) * 1000)::float8 AS "dueInMs"
         FROM event ORDER BY created_at`,
      )
    ).rows
  return { store, pool, take, rows }
}

const made = () => ({ id: randomUUID(), createdAt: new Date() })
const sent = (n: number, app = 'shop') => ({
  ...made(),
  app,
  type: 'notice.sent' as const,
  data: { n },
})

test('add: each event is a separate row, due at once, with nothing tried', async () => {
  const { store, take, rows } = await openStore()
  await Promise.all([
    store.add(sent(1)),
    store.add({
      ...made(),
      app: 'bank',
      type: 'captcha.locked',
      data: { rule: 'guesses', to: 'a***@b.test' },
    }),
  ])
  const all = (await rows()).sort((a, b) => (a.app < b.app ? 1 : -1))
  expect(all).toMatchObject([
    { app: 'shop', type: 'notice.sent', data: { n: 1 }, tries: 0 },
    { app: 'bank', type: 'captcha.locked', data: { rule: 'guesses', to: 'a***@b.test' }, tries: 0 },
  ])
  const taken = (await take()).sort((a, b) => (a.app < b.app ? 1 : -1))
  expect(taken).toMatchObject([
    { id: all[0].id, app: 'shop', type: 'notice.sent', data: { n: 1 }, tries: 1, isOld: false },
    { id: all[1].id, app: 'bank', type: 'captcha.locked', tries: 1, isOld: false },
  ])
  expect(Math.abs(Date.now() - (taken[0]?.createdAt.getTime() ?? 0))).toBeLessThan(60_000)
})

test('add: the answer of a commit was lost, and the event is added again → one event, with the first id and time', async () => {
  const { store, take, rows } = await openStore()
  const event = { ...sent(1), createdAt: new Date(Date.now() - 50_000) }
  await store.add(event)
  await Promise.all([store.add(event), store.add(sent(2))])
  expect(await rows()).toHaveLength(2)
  expect(await take()).toContainEqual(
    expect.objectContaining({ id: event.id, createdAt: event.createdAt }),
  )
})

test('oldestSeconds: reads one entry of an index, however many wait', async () => {
  const { store, pool } = await openStore()
  await pool.query(`
    INSERT INTO event (app, type, data, created_at)
    SELECT 'shop', 'notice.sent', '{}', now() - n * interval '1 second' FROM generate_series(1, 5000) AS n`)
  expect(Math.round(await store.oldestSeconds())).toBeCloseTo(5_000, -2)
  await pool.query('ANALYZE event')
  const { rows } = await pool.query('EXPLAIN SELECT min(created_at) FROM event')
  expect(JSON.stringify(rows)).toContain('event_created_at_idx')
})

test('take: during the lease no other worker gets it, then the first one does, as a further try', async () => {
  const { store, pool, take, rows } = await openStore()
  await store.add(sent(1))
  const [first] = await take()
  expect(await take()).toEqual([])
  const [row] = await rows()
  expect(row.dueInMs).toBeGreaterThan(leaseMs - 5_000)
  expect(row.dueInMs).toBeLessThanOrEqual(leaseMs)
  await pool.query(`UPDATE event SET due_at = now() + interval '1 min'`)
  expect(await take()).toEqual([])
  // A second ago, because two connections may see the clock of a virtual machine a moment apart.
  await pool.query(`UPDATE event SET due_at = now() - interval '1 s'`)
  expect(await take()).toMatchObject([{ id: first?.id, tries: 2 }])
})

test('take: no more than asked for, those due longest first', async () => {
  const { store, pool, take } = await openStore()
  await Promise.all([1, 2, 3].map((n) => store.add(sent(n))))
  await pool.query(`UPDATE event SET due_at = now() - ((data ->> 'n')::int % 3) * interval '1 min'`)
  const numbers = async (limit: number) => (await take(limit)).map(({ data }) => data.n).sort()
  expect(await numbers(1)).toEqual([2])
  expect(await numbers(1)).toEqual([1])
  expect(await numbers(5)).toEqual([3])
})

test('take: ten at once never get the same event', async () => {
  const { store, take } = await openStore()
  await Promise.all(Array.from({ length: 200 }, (_, n) => store.add(sent(n))))
  const taken: string[] = []
  for (;;) {
    const rounds = (await Promise.all(Array.from({ length: 10 }, () => take(7)))).flat()
    if (rounds.length === 0) break
    taken.push(...rounds.map(({ id }) => id))
  }
  expect(taken).toHaveLength(200)
  expect(new Set(taken).size).toBe(200)
})

test('take: an event is old after a day, not before', async () => {
  const { store, pool, take } = await openStore()
  await Promise.all([store.add(sent(1)), store.add(sent(2))])
  await pool.query(
    `UPDATE event SET created_at = now() - CASE WHEN data ->> 'n' = '1' THEN interval '24 h 1 s'
                                                ELSE interval '23 h 59 m' END`,
  )
  const taken = await take()
  expect(new Map(taken.map(({ data, isOld }) => [data.n, isOld]))).toEqual(
    new Map([
      [1, true],
      [2, false],
    ]),
  )
})

test('settle: delivered events are removed, others wait for their pause, the rest stay unchanged', async () => {
  const { store, take, rows } = await openStore()
  await Promise.all([1, 2, 3, 4].map((n) => store.add(sent(n))))
  const taken = new Map((await take()).map(({ id, data }) => [data.n, id]))
  const idOf = (n: number) => taken.get(n) as string
  await store.settle([
    { id: idOf(1), retryInMs: undefined },
    { id: idOf(2), retryInMs: 60_000 },
    { id: idOf(3), retryInMs: 600_000 },
  ])
  const left = new Map((await rows()).map((row) => [row.data.n, row.dueInMs]))
  expect([...left.keys()].sort()).toEqual([2, 3, 4])
  expect(left.get(2)).toBeGreaterThan(50_000)
  expect(left.get(2)).toBeLessThanOrEqual(60_000)
  expect(left.get(3)).toBeGreaterThan(590_000)
  expect(left.get(4)).toBeLessThanOrEqual(leaseMs)
  await store.settle([{ id: idOf(2), retryInMs: 0 }])
  expect(await take()).toMatchObject([{ id: idOf(2), tries: 2 }])
  await store.settle([2, 3, 4].map((n) => ({ id: idOf(n), retryInMs: undefined })))
  expect(await rows()).toEqual([])
})

test('oldestSeconds: the age of the oldest event, due or not; 0 when there is none', async () => {
  const { store, pool, take } = await openStore()
  expect(await store.oldestSeconds()).toBe(0)
  await Promise.all([store.add(sent(1)), store.add(sent(2))])
  await pool.query(`UPDATE event SET created_at = now() - (data ->> 'n')::int * interval '1 h'`)
  await take()
  expect(await store.oldestSeconds()).toBeCloseTo(7_200, -1)
  await pool.query(`UPDATE event SET created_at = now() + interval '1 h'`)
  expect(await store.oldestSeconds()).toBe(0)
})
