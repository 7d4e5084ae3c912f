import { Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import { describe, expect, test, vi } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import type { Log } from '../../src/base/log.ts'
import { startLiveness } from '../../src/delivery/liveness.ts'
import type { Verdict } from '../../src/delivery/round.ts'
import { startDeliveryWorker } from '../../src/delivery/worker.ts'
import { createAdminServer } from '../../src/http/admin.ts'
import { listen } from '../../src/http/listen.ts'
import { type QueueOf, queueName, queuePrefix } from '../../src/notice/job.ts'
import { createProducer } from '../../src/notice/producer.ts'
import { connectRedis } from '../../src/storage/redis.ts'
import { testMetrics } from '../tools/metrics.ts'
import { noLimits, startPostern } from '../tools/postern.ts'
import { type TestRedis, testRedis } from '../tools/redis.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { startTcpProxy } from '../tools/tcp-proxy.ts'
import { eventually } from '../tools/wait.ts'
import { freshPhone, noticeBody, rowOf, untilFinal } from './notices.ts'

const policyFile = { policies: noLimits }

const [codes, bulk] = [
  { channel: 'sms', kind: 'captcha' },
  { channel: 'sms', kind: 'notice' },
] as const

/** A queue of SMS in a Redis of this test. */
async function openQueue(
  { prefix, connect }: Pick<TestRedis, 'prefix' | 'connect'>,
  of: QueueOf = codes,
) {
  const connection = await connect('producer')
  const queue = new Queue(queueName(of), { connection, prefix: queuePrefix(prefix, of) })
  releaseLater(() => queue.close())
  return queue
}

type WorkerDeps = Parameters<typeof startDeliveryWorker>[0]
function startWorker({
  log = {},
  ...deps
}: Partial<Omit<WorkerDeps, 'log'>> &
  Pick<WorkerDeps, 'connection' | 'keyPrefix'> & { log?: Partial<Log> }) {
  const worker = startDeliveryWorker({
    ...{ queue: codes, concurrency: 1, deliver: async () => ({ done: true }) },
    producer: { add: async () => {} },
    ...deps,
    log: { jobFailed() {}, connectionFailed() {}, ...log } as unknown as Log,
  })
  releaseLater(() => worker.close())
  return worker
}

const counts = (queue: Queue) => queue.getJobCounts('waiting', 'active', 'delayed', 'failed')
const none = { waiting: 0, active: 0, delayed: 0, failed: 0 }

describe('old and new versions side by side (F27)', () => {
  test('a job of another name and with more data is a hint at its row; one without an id stops no other job', async () => {
    const api = await startPostern({ policyFile, roles: { api: true, worker: false } })
    const queue = await openQueue(api.redis, bulk)
    const { body } = await api.post('/v1/notices', noticeBody('sms', freshPhone()))
    await eventually(async () => (await queue.getWaitingCount()) === 1)
    await queue.obliterate({ force: true })
    await queue.add('from-the-future', { nothing: 'of ours' })
    await queue.add('from-the-future', { id: body.id, more: { than: 'we know' } })
    await queue.add('send', { id: 'no-uuid' })
    await startPostern({ policyFile, on: api, roles: { api: false, worker: true } })
    await untilFinal(api, [body.id])
    expect((await rowOf(api, body.id)).state).toBe('sent')
    await eventually(async () => expect(await counts(queue)).toEqual(none))
  })
})

describe('sendAt', () => {
  test('a notice is sent at its time and not before, and its ttl counts from there', async () => {
    const postern = await startPostern({ policyFile })
    // On a busy machine, the time can be over when the request arrives: the notice is then sent at once.
    const { sendAt, body } = await eventually(async () => {
      const sendAt = new Date(Date.now() + 1_500)
      const { status, body } = await postern.post('/v1/notices', {
        ...noticeBody('sms', freshPhone()),
        sendAt: sendAt.toISOString(),
        ttl: '10s',
      })
      expect(status).toBe(202)
      expect(Date.parse(body.expiresAt)).toBe(sendAt.getTime() + 10_000)
      return { sendAt, body }
    })
    await untilFinal(postern, [body.id])
    const row = await rowOf(postern, body.id)
    expect(row.state).toBe('sent')
    expect(row.sent_at.getTime()).toBeGreaterThanOrEqual(sendAt.getTime() - 50)
    expect(row.claims).toBe(1)
    const view = await postern.get(`/v1/notices/${body.id}`)
    expect(view.body.sendAt).toBe(sendAt.toISOString())
  })

  test.for([
    ['sendAt 8 days ahead', (): string => new Date(Date.now() + 8 * 86_400_000).toISOString(), 400],
    ['sendAt that is no time', (): string => 'tomorrow', 400],
    ['sendAt in the past: now', (): string => new Date(Date.now() - 60_000).toISOString(), 202],
  ] as const)('%s', async ([, sendAt, expected]) => {
    const postern = await startPostern({ policyFile, roles: { api: true, worker: false } })
    const { status } = await postern.post('/v1/notices', {
      ...noticeBody('sms', freshPhone()),
      sendAt: sendAt(),
    })
    expect(status).toBe(expected)
  })
})

describe('liveness is progress', () => {
  function watch(waiting: number, idleDurationMs: number) {
    const liveness = startLiveness({
      workers: [
        { ...bulk, idleDurationMs: () => idleDurationMs },
        { ...codes, idleDurationMs: () => 1_000 },
      ],
      depths: async () => [
        { ...bulk, state: 'waiting', value: waiting },
        { ...bulk, state: 'delayed', value: 3 },
        { ...codes, state: 'waiting', value: 0 },
      ],
      stuckTimeoutMs: 50,
      lookSpacingMs: 10,
    })
    releaseLater(() => liveness.stop())
    return liveness
  }

  test('jobs wait and no job is running: not live', async () => {
    const liveness = watch(3, 1_000)
    expect(liveness.reasonsNotLive()).toEqual([])
    await eventually(() => liveness.reasonsNotLive().length === 1)
  })

  test.for([
    ['an empty queue', 0, 1_000],
    ['a job in hand, however long', 3, 0],
  ] as const)('%s: live', async ([, waiting, idleDurationMs]) => {
    const [liveness, stuck] = [watch(waiting, idleDurationMs), watch(3, 1_000)]
    await eventually(() => stuck.reasonsNotLive().length === 1)
    expect(liveness.reasonsNotLive()).toEqual([])
  })

  test('a delivery that throws is tried again; the worker is idle only while no job is under way', async () => {
    const redis = await testRedis()
    const queue = await openQueue(redis)
    const failed: string[] = []
    const idleDurationMs: number[] = []
    const id = newId()
    const worker = startWorker({
      connection: await redis.connect('worker'),
      keyPrefix: redis.prefix,
      async deliver() {
        idleDurationMs.push(worker.idleDurationMs())
        if (idleDurationMs.length === 1) throw new Error('away')
        return { done: true }
      },
      log: { jobFailed: (job) => void failed.push(job) },
    })
    await queue.add('send', { id })
    await eventually(() => idleDurationMs.length === 2)
    expect([failed, idleDurationMs]).toEqual([[id], [0, 0]])
    await eventually(() => worker.idleDurationMs() > 0)
  })

  test('a user of Redis lacks a right that BullMQ needs at first: the process stays awake, and works once it has it', async () => {
    const redis = await testRedis()
    const user = `worker-${newId()}`
    await redis.client.call('ACL', 'SETUSER', user, 'on', '>pass', '~*', '&*', '+@all', '-info')
    releaseLater(() => redis.client.call('ACL', 'DELUSER', user))
    const url = new URL(redis.url)
    Object.assign(url, { username: user, password: 'pass' })
    const connection = closeLater(
      connectRedis(url.href, 'worker', () => {}),
      'disconnect',
    )
    const queue = await openQueue(redis)
    const [delivered, failures]: [string[], string[]] = [[], []]
    startWorker({
      ...{ connection, keyPrefix: redis.prefix },
      async deliver(id) {
        delivered.push(id)
        return { done: true }
      },
      log: { connectionFailed: (_, error) => void failures.push((error as Error).message) },
    })
    const id = newId()
    await queue.add('send', { id })
    await eventually(() => expect(failures.join()).toContain('NOPERM'))
    await redis.client.call('ACL', 'SETUSER', user, '+info')
    await eventually(() => expect(delivered).toEqual([id]))
    expect(failures.length).toBeLessThan(100)
  })

  test('/livez of a worker at rest is 200', async () => {
    const postern = await startPostern({ policyFile })
    expect((await fetch(`${postern.adminUrl}/livez`)).status).toBe(200)
  })

  test('/livez of a worker that is stuck is 503 with the reason', async () => {
    const { reasonsNotLive } = watch(3, 1_000)
    const server = createAdminServer({
      metrics: testMetrics(),
      measure: async () => {},
      readiness: async () => ({ reasons: [], warnings: [], isUseful: true }),
      reasonsNotLive,
    })
    const url = await listen(server, 0, '127.0.0.1')
    releaseLater(() => server.stop())
    const look = () => fetch(`${url}/livez`, { headers: { connection: 'close' } })
    await eventually(async () => (await look()).status === 503)
    expect(await (await look()).json()).toEqual({
      status: 'stuck',
      reasons: ['send-sms-bulk jobs are waiting and the worker starts none'],
    })
  })
})

describe('a job of several notices', () => {
  const ids = Array.from({ length: 6 }, () => newId())

  async function open(deliver: (id: string) => Promise<Verdict>, concurrency = 2) {
    const redis = await testRedis()
    const connection = await redis.connect('producer')
    const queue = await openQueue(redis)
    const producer = closeLater(createProducer(connection, redis.prefix))
    const start = async () =>
      startWorker({
        ...{ keyPrefix: redis.prefix, concurrency, deliver, producer },
        connection: await redis.connect('worker'),
      })
    return { queue, start }
  }
  test('each is delivered once, and no more at a time than the worker may', async () => {
    const delivered: string[] = []
    let [now, most] = [0, 0]
    const { queue, start } = await open(async (id) => {
      most = Math.max(most, ++now)
      await new Promise(setImmediate)
      now--
      delivered.push(id)
      return { done: true }
    })
    await queue.add('send', { ids })
    await start()
    await eventually(() => delivered.length === ids.length)
    expect(delivered.sort()).toEqual(ids.toSorted())
    expect(most).toBe(2)
    await eventually(async () => expect(await counts(queue)).toEqual(none))
  })

  test('a notice that is not done, or whose delivery throws, comes back alone; the others do not', async () => {
    const calls = new Map<string, number>()
    const { queue, start } = await open(async (id) => {
      calls.set(id, (calls.get(id) ?? 0) + 1)
      if (id === ids[1] && calls.get(id) === 1) throw new Error('away')
      const isDone = id !== ids[2] || calls.get(id) === 3
      return isDone ? { done: true } : { done: false, retryInMs: 10 }
    })
    await queue.add('send', { ids })
    await start()
    await eventually(() => calls.get(ids[1] ?? '') === 2 && calls.get(ids[2] ?? '') === 3)
    expect(ids.map((id) => calls.get(id))).toEqual([1, 2, 3, 1, 1, 1])
    await eventually(async () => expect(await counts(queue)).toEqual(none))
  })

  test('a notice that comes back does not wait for the others of its job', async () => {
    const calls: string[] = []
    const callsOf = (wanted?: string) => calls.filter((id) => id === wanted).length
    const { queue, start } = await open(async (id) => {
      calls.push(id)
      if (id === ids[1]) await eventually(() => callsOf(ids[0]) === 2)
      const isDone = id !== ids[0] || callsOf(id) === 2
      return isDone ? { done: true } : { done: false, retryInMs: 10 }
    })
    await queue.add('send', { ids })
    await start()
    await eventually(() => calls.length === ids.length + 1)
    expect([callsOf(ids[0]), callsOf(ids[1])]).toEqual([2, 1])
    await eventually(async () => expect(await counts(queue)).toEqual(none))
  })

  test('a worker that stops puts those that it has not begun back on the queue', async () => {
    const begun: string[] = []
    const { queue, start } = await open(async (id) => {
      begun.push(id)
      await eventually(() => stopping)
      return { done: true }
    })
    let stopping = false
    await queue.add('send', { ids })
    const worker = await start()
    await eventually(() => begun.length === 2)
    const closed = worker.close()
    stopping = true
    await closed
    expect(begun).toEqual(ids.slice(0, 2))
    const waiting = await queue.getJobs(['waiting'])
    expect(waiting.flatMap(({ data }) => data.ids)).toEqual(ids.slice(2))
  })
})

test('the worker of bulk notices has all that it can take: the worker of codes delivers a code', async () => {
  const redis = await testRedis()
  const [codeQueue, bulkQueue] = [await openQueue(redis), await openQueue(redis, bulk)]
  let isCodeDone = false
  const delivered: string[] = []
  const shared = { connection: await redis.connect('worker'), keyPrefix: redis.prefix }
  startWorker({
    ...shared,
    queue: bulk,
    async deliver(id) {
      await eventually(() => isCodeDone)
      delivered.push(id)
      return { done: true }
    },
  })
  startWorker({
    ...shared,
    async deliver(id) {
      delivered.push(id)
      isCodeDone = true
      return { done: true }
    },
  })
  const [code, ...notices] = [newId(), newId(), newId()]
  await bulkQueue.add('send', { ids: notices })
  await eventually(async () => (await counts(bulkQueue)).active === 1)
  await codeQueue.add('send', { id: code })
  await eventually(() => expect(delivered).toEqual([code, ...notices]))
})

test('ids never met: a job whose row is gone ends without a fault', async () => {
  const postern = await startPostern({ policyFile })
  const queue = await openQueue(postern.redis)
  await queue.add('send', { id: newId() })
  await eventually(async () => expect(await counts(queue)).toEqual(none))
})

test('a worker ends if its Redis was never there, has gone, never answers, or falls silent; then it makes no connection again', async () => {
  const { url, prefix, client } = await testRedis()
  async function close(fail: 'cut' | 'stall', before: RegExp, after: RegExp) {
    const proxy = await startTcpProxy(Number(new URL(url).port))
    const keyPrefix = `${prefix}${proxy.port}:`
    if (!before.test('ready')) proxy[fail]()
    const connection = closeLater(
      connectRedis(proxy.through(url), 'worker', () => {}),
      'disconnect',
    )
    const duplicate = vi.spyOn(connection as Redis, 'duplicate')
    const worker = startWorker({ connection, keyPrefix })
    const reads = duplicate.mock.results[0]?.value as Redis
    await eventually(() => before.test(connection.status))
    const isReading = (line: string) => line.includes(keyPrefix) && line.includes('cmd=bzpopmin')
    if (before.test('ready'))
      await eventually(async () =>
        String(await client.client('LIST'))
          .split('\n')
          .some(isReading),
      )
    const ended = new Promise<void>((resolve) => reads.once('end', resolve))
    const connect = vi.spyOn(reads, 'connect')
    proxy[fail]()
    await eventually(() => after.test(connection.status))
    await worker.close()
    return { ended, connect }
  }
  const [silent] = await Promise.all([
    close('stall', /^ready$/, /^ready$/),
    close('cut', /^reconnecting$/, /^reconnecting$/),
    close('cut', /^ready$/, /^reconnecting$/),
    // With TLS the first silence is before the connection is made.
    close('stall', /^connect(ing)?$/, /^connect(ing)?$/),
  ])
  await silent.ended
  await client.ping()
  expect(silent.connect).not.toHaveBeenCalled()
})
