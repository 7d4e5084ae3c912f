import { randomBytes } from 'node:crypto'
import { beforeEach, expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import type { Conversion } from '../../src/notice/conversions.ts'
import { createNoticeStore } from '../../src/notice/store.ts'
import { openDatabase } from '../../src/storage/database.ts'
import { testDatabase } from '../tools/database.ts'
import { releaseLater } from '../tools/release.ts'

const { url, pool } = await testDatabase()
const database = openDatabase(url, { maxConnections: 4, onError: () => {} })
releaseLater(() => database.close())
const counted: string[] = []
const onConverted = ({ provider, channel, outcome }: Conversion, n: number) => {
  for (let nth = 0; nth < n; nth++) counted.push(`${provider} ${channel} ${outcome}`)
}
const store = createNoticeStore(database, { claimMs: 10_000, onConverted })

beforeEach(async () => {
  await pool.query('DELETE FROM notice')
  await pool.query(
    `UPDATE retention SET reached = '00000000-0000-7000-8000-000000000000' WHERE task = 'conversions'`,
  )
  counted.length = 0
})

async function made(kind: 'captcha' | 'notice' = 'captcha') {
  const id = newId(database.nowMs())
  await store.insert({
    ...{
      id,
      app: 'default',
      kind,
      channel: 'sms',
      recipient: '+8613800138000',
      recipientHash: randomBytes(16),
    },
    ...{
      scene: 'login',
      template: 'captcha',
      locale: 'en',
      sealedParams: Buffer.from('sealed'),
      ttlMs: 60_000,
    },
  })
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

test('after an open code, later ones wait; many are counted over several blocks', async () => {
  const [first, second] = [await sent(), await sent()]
  await endsIn(second, -60)
  await store.countUnanswered()
  expect(counted).toEqual([])
  await endsIn(first, -60)
  await pool.query(
    `INSERT INTO notice (id, app, kind, channel, recipient_hash, template, locale, state, created_at, expires_at, sent_at, provider)
     SELECT ($1::text || lpad(to_hex(n), 4, '0'))::uuid, 'default', 'captcha', 'sms', '\\x00', 'captcha', 'en', 'sent', now(), now() - interval '1 min', now(), 'b'
     FROM generate_series(1, 2500) AS n`,
    [newId(database.nowMs() - 1_000).slice(0, -4)],
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
