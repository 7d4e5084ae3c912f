import { beforeEach, expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { createBrowse } from '../../src/notice/browse.ts'
import type { Conversion } from '../../src/notice/conversions.ts'
import { createNoticeStore } from '../../src/notice/store.ts'
import { databaseAt, testDatabase } from '../tools/database.ts'
import { insertNotices, newNotice } from '../tools/notices.ts'

const { url, pool } = await testDatabase()
const database = databaseAt(url, 4)
const counted: string[] = []
const onConverted = ({ provider, channel, outcome }: Conversion, n: number) => {
  for (let nth = 0; nth < n; nth++) counted.push(`${provider} ${channel} ${outcome}`)
}
const store = createNoticeStore(database, { claimTtlMs: 10_000, onConverted })

beforeEach(async () => {
  await pool.query('DELETE FROM notice')
  await pool.query(
    `UPDATE retention SET reached = '00000000-0000-7000-8000-000000000000' WHERE task = 'conversions'`,
  )
  counted.length = 0
})

async function made(kind: 'captcha' | 'notice' = 'captcha') {
  const id = newId(database.nowMs())
  await store.insert(newNotice({ id, kind, ttlMs: 60_000 }))
  const claim = await store.claim({ id, claims: 0 })
  const write = () =>
    store.record({
      id,
      claims: claim?.claims ?? 0,
      state: 'sent',
      attempts: [],
      provider: 'a',
      providerMessageId: id,
    })
  return { id, write }
}
async function sent(kind?: 'captcha' | 'notice') {
  const { id, write } = await made(kind)
  await write()
  return id
}
const endsIn = (id: string, seconds: number) =>
  pool.query(`UPDATE notice SET expires_at = now() + $2 * interval '1 second' WHERE id = $1`, [
    id,
    seconds,
  ])
const end = (id: string, as: 'passed' | 'tries' | 'canceled') => store.endCode({ id, end: as })

test('typed in time: passed, once, and never unanswered', async () => {
  const id = await sent()
  await end(id, 'passed')
  await end(id, 'passed')
  expect(counted).toEqual(['a sms passed'])
  await endsIn(id, -60)
  await store.countUnanswered()
  expect(counted).toEqual(['a sms passed'])
})

test('typed before the worker has written its outcome: passed', async () => {
  const { id, write } = await made()
  await end(id, 'passed')
  expect(counted).toEqual([])
  await write()
  expect(counted).toEqual(['a sms passed'])
})

test('not typed: unanswered when its time has ended and not before, once, by any number of workers', async () => {
  const id = await sent()
  await store.countUnanswered()
  await endsIn(id, -4)
  await store.countUnanswered()
  expect(counted).toEqual([])
  await endsIn(id, -6)
  await Promise.all([1, 2, 3, 4].map(() => store.countUnanswered()))
  await store.countUnanswered()
  expect(counted).toEqual(['a sms unanswered'])
})

test('typed when it counts as unanswered already, because PostgreSQL was away: not passed', async () => {
  const id = await sent()
  await endsIn(id, -6)
  await store.countUnanswered()
  await end(id, 'passed')
  expect(counted).toEqual(['a sms unanswered'])
})

test('canceled, without tries, not accepted by a provider, or no code: neither', async () => {
  const ids = [await sent(), await sent(), (await made()).id, await sent('notice')]
  await end(ids[0] as string, 'canceled')
  await end(ids[1] as string, 'tries')
  for (const id of ids) await endsIn(id, -60)
  await store.countUnanswered()
  expect(counted).toEqual([])
})

test.each([
  ['canceled', []],
  ['tries', []],
  ['passed', ['a sms unanswered']],
  ['gone', ['a sms unanswered']],
] as const)(
  'a way of a verification that ended by %s, not typed itself: %j',
  async (as, expected) => {
    const [id, verification] = [await sent(), newId(database.nowMs())]
    const named = { id: verification, app: 'web', scene: 'login', workflow: 'all', keyId: 'k' }
    const row = { ...named, sealed: Buffer.from('x'), isPage: false, ways: 2, ttlMs: 9 }
    await store.addVerification(row)
    await pool.query('UPDATE notice SET verification_id = $2 WHERE id = $1', [id, verification])
    await store.endVerification(verification, as)
    await endsIn(id, -60)
    await store.countUnanswered()
    expect(counted).toEqual(expected)
    expect(await createBrowse(database).latestTyped(undefined)).toHaveLength(expected.length)
  },
)

test('after an open code, later ones wait; many are counted over several blocks', async () => {
  const [first, second] = [await sent(), await sent()]
  await endsIn(second, -60)
  await store.countUnanswered()
  expect(counted).toEqual([])
  await endsIn(first, -60)
  const at = database.nowMs() - 1_000
  const typed = { kind: 'captcha', state: 'sent', provider: 'b', sent_at: new Date(at) }
  const ended = { expires_at: new Date(Date.now() - 60_000) }
  await insertNotices(
    pool,
    Array.from({ length: 2_500 }, () => ({ id: newId(at), ...typed, ...ended })),
  )
  await store.countUnanswered()
  expect(counted.filter((one) => one === 'b sms unanswered')).toHaveLength(2_500)
  expect(counted).toHaveLength(2_502)
})

test('the first pass begins with the codes of now', async () => {
  const id = await sent()
  await endsIn(id, -60)
  await pool.query(`DELETE FROM retention WHERE task = 'conversions'`)
  await store.countUnanswered()
  expect(counted).toEqual([])
})
