import { expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import { Unavailable } from '../../src/base/unavailable.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { createNoticeCreator, type PreparedNotice } from '../../src/notice/create.ts'
import type { Producer } from '../../src/notice/producer.ts'
import { createNoticeStore, type NoticeStore } from '../../src/notice/store.ts'
import { databaseAt, testDatabase } from '../tools/database.ts'
import { testMetrics } from '../tools/metrics.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const { url, pool } = await testDatabase()
const database = databaseAt(url, 4)
const store = createNoticeStore(database, { claimTtlMs: 10_000 })
const secrets = createSecrets('the first secret, of thirty-two bytes or more')
const log = createLog({ level: 'silent', process: 'test' })

function open(over: Partial<NoticeStore> = {}, add?: () => Promise<void>) {
  const queued: { id: string; retryInMs?: number }[] = []
  const metrics = testMetrics()
  const producer = {
    add: async (job: { id: string; retryInMs?: number }) => {
      queued.push(job)
      await add?.()
    },
  } as unknown as Producer
  const creator = createNoticeCreator({
    store: { ...store, ...over },
    producer,
    hashesOf: secrets.recipientHashes,
    seal: secrets.seal,
    metrics,
    log,
    isTestRecipient: (to) => to === testRecipient,
    nowMs: () => 1_000,
  })
  releaseLater(() => creator.close())
  const accepted = async () =>
    (await metrics.accepted.get()).values
      .filter(({ value }) => value > 0)
      .map(({ labels, value }) => `${labels.kind} ${labels.channel} ${value}`)
  async function create(...asked: Parameters<typeof creator.createNotice>) {
    const created = await creator.createNotice(...asked)
    if (typeof created === 'string') throw new Error(created)
    return created
  }
  return { create, queued, accepted }
}

const testRecipient = '+15005550006'

const draft = (over: Partial<PreparedNotice> = {}): PreparedNotice => ({
  id: newId(),
  app: 'shop',
  kind: 'captcha',
  channel: 'sms',
  to: '+8613800138000',
  scene: 'login',
  template: 'captcha',
  locale: 'en',
  ttlMs: 300_000,
  ...over,
})

const rowOf = async (id: string) =>
  (await pool.query('SELECT * FROM notice WHERE id = $1', [id])).rows[0]

test('a notice: its row as it was asked for, its variables sealed under its id, and a job', async () => {
  const { create, queued, accepted } = open()
  const notice = draft()
  const created = await create(notice, { code: '0042', minutes: 5 }, 2_000)
  const row = await rowOf(notice.id)
  expect(row).toMatchObject({
    app: 'shop',
    kind: 'captcha',
    channel: 'sms',
    recipient: '+8613800138000',
    scene: 'login',
    template: 'captcha',
    locale: 'en',
    state: 'pending',
  })
  expect(row.recipient_hash).toEqual(secrets.recipientHashes('sms', '+8613800138000')[0])
  expect(JSON.parse(secrets.unseal(row.sealed_params, notice.id))).toEqual({
    code: '0042',
    minutes: 5,
  })
  expect(row.sealed_params.includes('0042')).toBe(false)
  expect(created.createdAt.getTime()).toBe(row.created_at.getTime())
  expect(created.expiresAt.getTime() - created.createdAt.getTime()).toBe(300_000)
  expect(queued).toMatchObject([{ id: notice.id, kind: 'captcha', channel: 'sms', retryInMs: 0 }])
  expect(await accepted()).toEqual(['captcha sms 1'])
})

test('sendAt: its job waits until then, and its time counts from there', async () => {
  const { create, queued } = open()
  const sendAt = new Date(Date.now() + 3_600_000)
  const created = await create(draft({ kind: 'notice', sendAt, scene: undefined }), {}, 2_000)
  expect(created.expiresAt.getTime()).toBe(sendAt.getTime() + 300_000)
  expect(queued[0]?.retryInMs).toBeGreaterThan(3_590_000)
  expect(queued[0]?.retryInMs).toBeLessThanOrEqual(3_600_000)
  expect((await rowOf(created.id)).scene).toBe(null)
})

test('the queue is away: the notice is still made', async () => {
  const { create, accepted } = open({}, () => Promise.reject(new Error('away')))
  const notice = draft()
  await create(notice, {}, 2_000)
  expect((await rowOf(notice.id)).state).toBe('pending')
  expect(await accepted()).toEqual(['captcha sms 1'])
})

test('no time left, or an id that is there already: an error, no job, and nothing counted', async () => {
  const { create, queued, accepted } = open()
  const notice = draft()
  await expect(create(notice, {}, 0)).rejects.toBeInstanceOf(Unavailable)
  expect(await rowOf(notice.id)).toBeUndefined()
  await create(notice, {}, 2_000)
  await expect(create(notice, {}, 2_000)).rejects.toThrow(notice.id)
  expect(queued).toHaveLength(1)
  expect(await accepted()).toEqual(['captcha sms 1'])
  // The first one stays.
  expect((await rowOf(notice.id)).state).toBe('pending')
})

test('the commit takes longer than the request may: Unavailable, and the row that appears is closed unsent', async () => {
  let commit = () => {}
  const isTime = new Promise<void>((resolve) => {
    commit = resolve
  })
  const { create, queued, accepted } = open({
    async insert(notice) {
      await isTime
      return store.insert(notice)
    },
  })
  const notice = draft()
  await expect(create(notice, {}, 50)).rejects.toBeInstanceOf(Unavailable)
  commit()
  await eventually(async () => expect(await rowOf(notice.id)).toMatchObject({ state: 'failed' }))
  expect(await rowOf(notice.id)).toMatchObject({ error: 'abandoned', sealed_params: null })
  expect(queued).toEqual([])
  expect(await accepted()).toEqual([])
})

test('the answer of a commit is lost: Unavailable, and the row is closed as soon as PostgreSQL answers', async () => {
  let failures = 2
  const { create } = open({
    async insert(notice) {
      await store.insert(notice)
      throw new Unavailable('postgresql', undefined)
    },
    async abandon(ids) {
      failures -= 1
      if (failures >= 0) throw new Unavailable('postgresql', undefined)
      await store.abandon(ids)
    },
  })
  const notice = draft()
  await expect(create(notice, {}, 2_000)).rejects.toBeInstanceOf(Unavailable)
  await eventually(async () => expect((await rowOf(notice.id)).state).toBe('failed'))
})

test('an unexpected error is no outage: thrown unchanged, and nothing is closed', async () => {
  const { create } = open({ insert: () => Promise.reject(new Error('a fault of ours')) })
  await expect(create(draft(), {}, 2_000)).rejects.toThrow('a fault of ours')
})

test('adopt: an open notice is promised and no longer abandoned; a sent one is returned; one that ended unsent is not', async () => {
  const { create } = open()
  const [open_, sent, failed] = [draft(), draft(), draft()]
  for (const notice of [open_, sent, failed]) await create(notice, {}, 2_000)
  await store.record({ id: sent.id, claims: 0, state: 'sent', attempts: [] })
  await store.record({ id: failed.id, claims: 0, state: 'failed', attempts: [], error: 'x' })
  expect(await store.adopt('shop', open_.id)).toMatchObject({
    isOpen: true,
    createdAt: expect.any(Date),
    expiresAt: expect.any(Date),
  })
  expect(await store.adopt('shop', sent.id)).toMatchObject({ isOpen: false })
  expect(await store.adopt('shop', failed.id)).toBe(null)
  expect(await store.adopt('shop', newId())).toBe(null)
  expect(await store.adopt('bank', open_.id)).toBe(null)
  await store.abandon([open_.id])
  expect((await rowOf(open_.id)).state).toBe('pending')
})

test('a test recipient: counted apart, with its times by PostgreSQL’s clock, and no row and no job', async () => {
  const { create, queued, accepted } = open()
  const notice = draft({ to: testRecipient, ttlMs: 5_000 })
  const created = await create(notice, {}, 0)
  expect(created).toEqual({ ...notice, createdAt: new Date(1_000), expiresAt: new Date(6_000) })
  expect([queued, await accepted()]).toEqual([[], []])
  const { rows } = await pool.query('SELECT 1 FROM notice WHERE id = $1', [notice.id])
  expect(rows).toEqual([])
})
