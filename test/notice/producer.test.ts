import { Queue } from 'bullmq'
import { expect, test } from 'vitest'
import { type Channel, channels } from '../../src/base/channel.ts'
import { newId } from '../../src/base/ids.ts'
import { Unavailable } from '../../src/base/unavailable.ts'
import { idsOf, queueName, queuePrefix } from '../../src/notice/job.ts'
import { createProducer } from '../../src/notice/producer.ts'
import { type NoticeKind, noticeKinds } from '../../src/notice/states.ts'
import { connectRedis } from '../../src/storage/redis.ts'
import { ownRedis } from '../tools/own-servers.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const redis = await testRedis()
const producer = closeLater(createProducer(await redis.connect('producer'), redis.prefix))
const connection = await redis.connect('producer')

function queueOf(channel: 'sms' | 'email', kind: NoticeKind = 'captcha'): Queue {
  const of = { channel, kind }
  const prefix = queuePrefix(redis.prefix, of)
  const queue = new Queue(queueName(of), { connection, prefix, skipVersionCheck: true })
  releaseLater(() => queue.close())
  return queue
}
const captcha = (id = newId()) => ({ id, channel: 'sms', kind: 'captcha' }) as const
const notice = (id = newId()) => ({ id, channel: 'sms', kind: 'notice' }) as const

test('add: the job is the notice id and nothing else, on the queue of its channel and kind', async () => {
  const sms = captcha()
  const mail = { ...notice(), channel: 'email' } as const
  await Promise.all([producer.add(sms), producer.add(mail)])
  const [smsJob, mailJob] = [
    await queueOf('sms').getJob(sms.id),
    await queueOf('email', 'notice').getJob(mail.id),
  ]
  expect(smsJob?.data).toEqual({ id: sms.id })
  expect(mailJob?.data).toEqual({ id: mail.id })
  expect(await queueOf('sms', 'notice').getJob(sms.id)).toBe(undefined)
})

test('the queues have separate hash tags: each can lie on its own shard', async () => {
  const notices = [captcha(), notice(), { ...notice(), channel: 'email' } as const]
  await Promise.all(notices.map((one) => producer.add(one)))
  const keys = await redis.client.keys('*send-*')
  const queues = notices.map(queueName)
  const tagsOf = (queue: string) =>
    new Set(keys.filter((key) => key.includes(`:${queue}:`)).map((key) => /{(.*?)}/.exec(key)?.[1]))
  const tags = queues.flatMap((queue) => [...tagsOf(queue)])
  expect([tags.length, new Set(tags).size]).toEqual([3, 3])
})

test('add: an overdue notice 100 times at once and again is one job (I11)', async () => {
  const queue = queueOf('sms')
  const before = await queue.getWaitingCount()
  const carry = { ...captcha(), isOverdue: true }
  await Promise.all(Array.from({ length: 100 }, () => producer.add(carry)))
  await producer.add(carry)
  expect(await queue.getWaitingCount()).toBe(before + 1)
})

test('add: new notices of one tick share jobs, codes and bulk apart; delayed and overdue ones have a job each', async () => {
  const [codeQueue, bulkQueue] = [queueOf('sms'), queueOf('sms', 'notice')]
  for (const queue of [codeQueue, bulkQueue]) await queue.obliterate({ force: true })
  const [codes, bulk] = [
    Array.from({ length: 40 }, () => captcha()),
    Array.from({ length: 18 }, () => notice()),
  ]
  const later = { ...notice(), retryInMs: 3_600_000 }
  const overdue = { ...captcha(), isOverdue: true }
  await Promise.all([...codes, ...bulk, later, overdue].map((one) => producer.add(one)))
  const idsIn = async (queue: Queue, state: 'waiting' | 'delayed') =>
    (await queue.getJobs([state])).map(({ data }) => idsOf(data))
  const ids = (notices: readonly { id: string }[]) => notices.map(({ id }) => id).sort()
  const ofCodes = await idsIn(codeQueue, 'waiting')
  expect(ofCodes.map(({ length }) => length).sort()).toEqual([1, 16, 16, 8].sort())
  expect(ofCodes.flat().sort()).toEqual(ids([...codes, overdue]))
  const ofBulk = await idsIn(bulkQueue, 'waiting')
  expect(ofBulk.map(({ length }) => length).sort()).toEqual([16, 2])
  expect(ofBulk.flat().sort()).toEqual(ids(bulk))
  expect(await idsIn(bulkQueue, 'delayed')).toEqual([[later.id]])
  for (const { data } of await codeQueue.getJobs()) {
    expect(Object.keys(data)).toEqual([idsOf(data).length > 1 ? 'ids' : 'id'])
  }
  expect(await producer.depths()).toEqual(
    expect.arrayContaining([
      { channel: 'sms', kind: 'captcha', state: 'waiting', value: 4 },
      { channel: 'sms', kind: 'notice', state: 'waiting', value: 2 },
      { channel: 'sms', kind: 'notice', state: 'delayed', value: 1 },
    ]),
  )
})

test('overdue: a job that a clock put off runs now; one that waits or runs stays one', async () => {
  const queue = queueOf('sms')
  await queue.obliterate({ force: true })
  const [putOff, later, waiting] = [captcha(), captcha(), captcha()]
  for (const job of [putOff, later]) await producer.add({ ...job, retryInMs: 3_600_000 })
  await producer.add(waiting)
  await Promise.all([putOff, waiting].map((job) => producer.add({ ...job, isOverdue: true })))
  const idsIn = async (state: 'waiting' | 'delayed') =>
    (await queue.getJobs([state])).map(({ id }) => id)
  expect((await idsIn('waiting')).sort()).toEqual([putOff.id, waiting.id].sort())
  expect(await idsIn('delayed')).toEqual([later.id])
})

test.each(['no list', 'failed', 'completed'])(
  'overdue: a job that is in %s of the queue does not block the id of its notice: it is made again',
  async (place) => {
    const queue = queueOf('email')
    await queue.obliterate({ force: true })
    const { id } = captcha()
    await queue.add('send', { id }, { jobId: id })
    const keyOf = (list: string) => queue.toKey(list)
    await redis.client.lrem(keyOf('wait'), 0, id)
    if (place !== 'no list') await redis.client.zadd(keyOf(place), 1, id)
    const job = { id, channel: 'email', kind: 'captcha' } as const
    await producer.add(job)
    for (let turn = 0; turn < 2; turn++) await producer.add({ ...job, isOverdue: true })
    const jobs = await queue.getJobs(['waiting', 'failed', 'completed'])
    expect(jobs.map((one) => [one.id, one.data])).toEqual([[id, { id }]])
    expect(await queue.getWaitingCount()).toBe(1)
  },
)

test('overdue: 50 notices whose jobs wait already cost two reads of a list, not one each: Redis stood still for seconds beside a backlog', async () => {
  const server = await ownRedis()
  const client = closeLater(
    connectRedis(server.url, 'producer', () => {}),
    'disconnect',
  )
  const own = closeLater(createProducer(client, redis.prefix))
  const overdue = Array.from({ length: 50 }, () => ({ ...notice(), isOverdue: true }))
  const addAll = () => Promise.all(overdue.map((one) => own.add(one)))
  await eventually(addAll)
  await client.config('RESETSTAT')
  await addAll()
  const calls = /cmdstat_(?:lrange|lpos):calls=(\d+)/.exec(await client.info('commandstats'))?.[1]
  // The lists of waiting and active jobs.
  expect(Number(calls)).toBe(2)
  expect((await own.depths()).filter(({ value }) => value > 0)).toEqual([
    { channel: 'sms', kind: 'notice', state: 'waiting', value: 50 },
  ])
})

test('more than 1,000 jobs of bulk notices wait: there are many, over all channels; delayed ones and codes do not count', async () => {
  const [sms, mail, codes] = [queueOf('sms', 'notice'), queueOf('email', 'notice'), queueOf('sms')]
  for (const queue of [sms, mail, codes]) await queue.obliterate({ force: true })
  // Only the lengths of the lists count. Jobs would keep the Redis of all tests busy.
  const wait = (queue: Queue, count: number) =>
    redis.client.rpush(queue.toKey('wait'), ...Array.from({ length: count }, () => newId()))
  await wait(sms, 500)
  await wait(mail, 500)
  await producer.add({ ...notice(), retryInMs: 3_600_000 })
  await wait(codes, 5)
  expect(await producer.isBulkLong()).toBe(false)
  await wait(mail, 1)
  expect(await producer.isBulkLong()).toBe(true)
  for (const queue of [sms, mail, codes]) await redis.client.del(queue.toKey('wait'))
})

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
  const damage = async (channel: Channel) => {
    for (const queue of noticeKinds.map((kind) => ({ channel, kind }))) {
      await client.set(`${queuePrefix(prefix, queue)}:${queueName(queue)}:wait`, 'not a list')
    }
  }
  const read = async () => [...new Set((await own.depths()).map(({ channel }) => channel))]
  expect(await read()).toEqual(channels)
  await damage('email')
  expect(await read()).toEqual(channels.filter((channel) => channel !== 'email'))
  for (const channel of channels) await damage(channel)
  await expect(read()).rejects.toThrow('WRONGTYPE')
})
