import { Queue } from 'bullmq'
import { expect, test } from 'vitest'
import { type Channel, channels } from '../../src/base/channel.ts'
import { newId } from '../../src/base/ids.ts'
import { Unavailable } from '../../src/base/unavailable.ts'
import { idsOf, queueName, queuePrefix } from '../../src/notice/job.ts'
import { createProducer } from '../../src/notice/producer.ts'
import { connectRedis } from '../../src/storage/redis.ts'
import { ownRedis } from '../tools/own-servers.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const redis = await testRedis()
const producer = closeLater(createProducer(await redis.connect('producer'), redis.prefix))
const connection = await redis.connect('producer')

function queueOf(channel: 'sms' | 'email'): Queue {
  const prefix = queuePrefix(redis.prefix, channel)
  const queue = new Queue(queueName(channel), { connection, prefix, skipVersionCheck: true })
  releaseLater(() => queue.close())
  return queue
}
const captcha = (id = newId()) => ({ id, channel: 'sms', kind: 'captcha' }) as const
const notice = (id = newId()) => ({ id, channel: 'sms', kind: 'notice' }) as const

test('add: the job is the notice id and nothing else, on the queue of its channel', async () => {
  const sms = captcha()
  const mail = { ...notice(), channel: 'email' } as const
  await Promise.all([producer.add(sms), producer.add(mail)])
  const [smsJob, mailJob] = [
    await queueOf('sms').getJob(sms.id),
    await queueOf('email').getJob(mail.id),
  ]
  expect(smsJob?.data).toEqual({ id: sms.id })
  expect(mailJob?.data).toEqual({ id: mail.id })
  expect(await queueOf('email').getJob(sms.id)).toBe(undefined)
})

test('the queues of the channels have separate hash tags: each can lie on its own shard', async () => {
  await Promise.all([producer.add(captcha()), producer.add({ ...notice(), channel: 'email' })])
  const tagsOf = async (channel: string) => {
    const keys = await redis.client.keys(`*send-${channel}*`)
    return [...new Set(keys.map((key) => /{(.*?)}/.exec(key)?.[1]))]
  }
  const [sms, email] = [await tagsOf('sms'), await tagsOf('email')]
  expect([sms.length, email.length]).toEqual([1, 1])
  expect(sms).not.toEqual(email)
})

test('add: an overdue notice 100 times at once and again is one job (I11)', async () => {
  const queue = queueOf('sms')
  const before = await queue.getJobCountByTypes('waiting', 'prioritized')
  const carry = { ...captcha(), isOverdue: true }
  await Promise.all(Array.from({ length: 100 }, () => producer.add(carry)))
  await producer.add(carry)
  expect(await queue.getJobCountByTypes('waiting', 'prioritized')).toBe(before + 1)
})

test('add: new notices of one tick share jobs, codes and bulk apart; delayed and overdue ones have a job each', async () => {
  const queue = queueOf('sms')
  await queue.obliterate({ force: true })
  const [codes, bulk] = [
    Array.from({ length: 40 }, () => captcha()),
    Array.from({ length: 6 }, () => notice()),
  ]
  const later = { ...notice(), retryInMs: 3_600_000 }
  const overdue = { ...captcha(), isOverdue: true }
  await Promise.all([...codes, ...bulk, later, overdue].map((one) => producer.add(one)))
  const idsIn = async (state: 'waiting' | 'prioritized' | 'delayed') =>
    (await queue.getJobs([state])).map(({ data }) => idsOf(data))
  const ids = (notices: readonly { id: string }[]) => notices.map(({ id }) => id)
  const waiting = await idsIn('waiting')
  expect(waiting.map(({ length }) => length).sort()).toEqual([1, 16, 16, 8].sort())
  expect(waiting.flat().sort()).toEqual(ids([...codes, overdue]).sort())
  const prioritized = await idsIn('prioritized')
  expect(prioritized.map(({ length }) => length).sort()).toEqual([2, 4])
  expect(prioritized.flat().sort()).toEqual(ids(bulk).sort())
  expect(await idsIn('delayed')).toEqual([[later.id]])
  for (const { data } of await queue.getJobs()) {
    expect(Object.keys(data)).toEqual([idsOf(data).length > 1 ? 'ids' : 'id'])
  }
})

test('captchas overtake notices that were queued before them', async () => {
  const queue = queueOf('sms')
  await queue.obliterate({ force: true })
  const [bulk, urgent] = [notice(), captcha()]
  await producer.add(bulk)
  await producer.add(urgent)
  const [first] = await queue.getJobs(['waiting'])
  expect(first?.id).toBe(urgent.id)
  expect((await queue.getJobs(['prioritized'])).map(({ id }) => id)).toEqual([bulk.id])
  expect(await producer.depths()).toEqual(
    expect.arrayContaining([
      { channel: 'sms', state: 'waiting', value: 1 },
      { channel: 'sms', state: 'prioritized', value: 1 },
    ]),
  )
})

test('overdue: a job that a clock put off runs now; one that waits or runs stays one', async () => {
  const queue = queueOf('sms')
  await queue.obliterate({ force: true })
  const [putOff, later, waiting] = [notice(), notice(), captcha()]
  for (const job of [putOff, later]) await producer.add({ ...job, retryInMs: 3_600_000 })
  await producer.add(waiting)
  await Promise.all([putOff, waiting].map((job) => producer.add({ ...job, isOverdue: true })))
  expect((await queue.getJobs(['prioritized'])).map(({ id }) => id)).toEqual([putOff.id])
  expect((await queue.getJobs(['waiting'])).map(({ id }) => id)).toEqual([waiting.id])
  expect((await queue.getJobs(['delayed'])).map(({ id }) => id)).toEqual([later.id])
})

test.each(['no list', 'failed', 'completed'])(
  'overdue: a job that is in %s of the queue does not block the id of its notice: it is made again',
  async (place) => {
    const queue = queueOf('email')
    await queue.obliterate({ force: true })
    const { id } = notice()
    await queue.add('send', { id }, { jobId: id })
    const keyOf = (list: string) => queue.toKey(list)
    await redis.client.lrem(keyOf('wait'), 0, id)
    if (place !== 'no list') await redis.client.zadd(keyOf(place), 1, id)
    const job = { id, channel: 'email', kind: 'notice' } as const
    await producer.add(job)
    for (let turn = 0; turn < 2; turn++) await producer.add({ ...job, isOverdue: true })
    const waiting = await queue.getJobs(['waiting', 'prioritized', 'failed', 'completed'])
    expect(waiting.map((one) => [one.id, one.data])).toEqual([[id, { id }]])
    expect(await queue.getPrioritizedCount()).toBe(1)
  },
)

test('Redis frozen: add is Unavailable within its deadline, and works again afterwards (F5)', async () => {
  const server = await ownRedis()
  const client = closeLater(
    connectRedis(server.url, 'producer', () => {}),
    'disconnect',
  )
  const own = closeLater(createProducer(client, redis.prefix))
  await eventually(() => own.add(captcha()))
  server.freeze()
  const startMs = performance.now()
  const settled = await Promise.allSettled([1, 2, 3].map(() => own.add(captcha())))
  expect(performance.now() - startMs).toBeLessThan(10_000)
  for (const outcome of settled) {
    expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(Unavailable) })
  }
  server.thaw()
  await eventually(() => own.add(captcha()))
})

test('depths: the queue of one channel gives no answer → the depths of the other channel; an error if none answers', async () => {
  const { client, connect, prefix } = await testRedis()
  const own = closeLater(createProducer(await connect('producer'), prefix))
  const damage = (channel: Channel) =>
    client.set(`${queuePrefix(prefix, channel)}:${queueName(channel)}:wait`, 'not a list')
  const read = async () => [...new Set((await own.depths()).map(({ channel }) => channel))]
  expect(await read()).toEqual(channels)
  await damage('email')
  expect(await read()).toEqual(channels.filter((channel) => channel !== 'email'))
  for (const channel of channels) await damage(channel)
  await expect(read()).rejects.toThrow('WRONGTYPE')
})
