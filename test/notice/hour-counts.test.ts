/** Counts of an hour, from real rows. */
import { expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import {
  createHourCounts,
  type Durations,
  hourMs,
  medianDurationMs,
} from '../../src/notice/hour-counts.ts'
import { databaseAt, testDatabase } from '../tools/database.ts'
import { insertNotices } from '../tools/notices.ts'

const { url, pool } = await testDatabase()
const database = databaseAt(url, 1)
const { countHour } = createHourCounts(database)
const fromMs = Math.floor(Date.now() / hourMs) * hourMs - 2 * hourMs

interface Row {
  app?: string
  atMs?: number
  state: string
  provider?: string
  sentAfterMs?: number
  finishedAfterMs?: number
  attempts?: readonly { provider: string | null }[]
  sendAfterMs?: number
}

async function insert({ app = 'shop', atMs = fromMs, state, ...row }: Row): Promise<void> {
  const at = (ms?: number) => (ms === undefined ? null : new Date(atMs + ms))
  const { provider, attempts = [], sentAfterMs, finishedAfterMs, sendAfterMs } = row
  await insertNotices(pool, [
    {
      ...{ id: newId(atMs), app, state, provider, attempts },
      ...{ created_at: at(0), expires_at: at(0) },
      ...{ sent_at: at(sentAfterMs), finished_at: at(finishedAfterMs), send_at: at(sendAfterMs) },
      due_at: state === 'pending' ? new Date() : null,
    },
  ])
}

const isNear = (ms: number | undefined, wanted: number) =>
  ms !== undefined && Math.abs(ms / wanted - 1) < 0.05

test('by provider: sent, delivered, failed; a message that no provider took counts where it was tried last', async () => {
  await insert({ state: 'sent', provider: 'box', sentAfterMs: 400 })
  await insert({ state: 'delivered', provider: 'box', sentAfterMs: 1_000, finishedAfterMs: 4_000 })
  await insert({ state: 'delivered', provider: 'box', sentAfterMs: 2_000, finishedAfterMs: 9_000 })
  await insert({ state: 'failed', provider: 'box', sentAfterMs: 1_000, finishedAfterMs: 5_000 })
  await insert({ state: 'failed', attempts: [{ provider: 'dead' }, { provider: 'last' }] })
  await insert({ state: 'expired' })
  await insert({ state: 'pending', attempts: [{ provider: 'last' }] })
  const wanted = [
    { provider: '', sent: 0, delivered: 0, failed: 1 },
    { provider: 'box', sent: 3, delivered: 2, failed: 1 },
    { provider: 'last', sent: 0, delivered: 0, failed: 1 },
  ]
  const counted = await countHour(undefined, fromMs)
  const sorted = counted.providers.toSorted((a, b) => a.provider.localeCompare(b.provider))
  expect(sorted).toEqual(wanted)
  expect(counted.isCut).toBe(false)
  expect(isNear(medianDurationMs([counted.toProvider]), 1_000)).toBe(true)
  expect(isNear(medianDurationMs([counted.toReceipt]), 4_000)).toBe(true)
})

test('of these apps and this hour alone; a time that was asked for is where its wait begins', async () => {
  const atMs = fromMs - hourMs
  await insert({ app: 'bank', atMs, state: 'sent', provider: 'box', sentAfterMs: 300 })
  await insert({ app: 'shop', atMs, state: 'sent', provider: 'box', sentAfterMs: 90_000 })
  await insert({
    ...{ app: 'late', atMs: atMs + hourMs - 1, state: 'sent', provider: 'box' },
    ...{ sentAfterMs: 60_050, sendAfterMs: 60_000 },
  })
  const sent = async (apps?: string[]) =>
    (await countHour(apps, atMs)).providers.reduce((sum, one) => sum + one.sent, 0)
  expect(await sent()).toBe(3)
  expect(await sent(['bank'])).toBe(1)
  expect(await sent(['bank', 'shop'])).toBe(2)
  expect(await sent([])).toBe(0)
  const { toProvider } = await countHour(['late'], atMs)
  expect(isNear(medianDurationMs([toProvider]), 50)).toBe(true)
})

test('an hour with more rows than are read: so many, and that is reported', async () => {
  const small = createHourCounts(database, 4)
  const counted = await small.countHour(undefined, fromMs)
  expect(counted.isCut).toBe(true)
  const ended = counted.providers.reduce((sum, { sent, failed }) => sum + sent + failed, 0)
  expect(ended).toBeLessThanOrEqual(4)
})

test('median: over all hours together; of none there is none', () => {
  const step = (ms: number, count: number): Durations =>
    new Map([[Math.round(8 * Math.log2(ms)), count]])
  expect(isNear(medianDurationMs([step(100, 1), step(1_000, 5), step(60_000, 3)]), 1_000)).toBe(
    true,
  )
  expect(medianDurationMs([new Map()])).toBe(undefined)
  expect(medianDurationMs([step(1, 1)])).toBe(1)
})
