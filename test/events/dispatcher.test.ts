import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { eventTypes } from '../../src/base/event-types.ts'
import { createLog } from '../../src/base/log.ts'
import { isSignedWebhook } from '../../src/crypto/standard-webhooks.ts'
import { openDatabase } from '../../src/db/database.ts'
import {
  type Receiver,
  startEventDispatcher,
  wantedEventTypes,
} from '../../src/events/dispatcher.ts'
import { createEventOutbox, type EventOutbox } from '../../src/events/outbox.ts'
import { createMetrics } from '../../src/metrics/metrics.ts'
import { testDatabase } from '../support/database.ts'
import { releaseLater } from '../support/release.ts'
import { eventually } from '../support/wait.ts'

const secret = 'a secret of the event carrier tests'

interface Told {
  readonly id: string
  readonly body: { type: string; timestamp: string; data: { n: number } }
  readonly isSigned: boolean
  readonly contentType: string | undefined
}

/** Answers as `statusOf` says; never with 0, and with -1 it hangs up. */
async function startReceiver(statusOf: (n: number) => number = () => 204) {
  const receiver = { url: '', told: [] as Told[], statusOf }
  const server = createServer(async (incoming, response) => {
    let raw = ''
    for await (const chunk of incoming) raw += chunk
    const body = JSON.parse(raw)
    receiver.told.push({
      id: String(incoming.headers['webhook-id']),
      body,
      isSigned: isSignedWebhook(secret, incoming.headers, raw, Date.now()),
      contentType: incoming.headers['content-type'],
    })
    const status = receiver.statusOf(body.data.n)
    if (status === -1) incoming.socket.destroy()
    else if (status !== 0) response.writeHead(status, { location: '/elsewhere' }).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  releaseLater(
    () =>
      new Promise((resolve) => {
        server.close(resolve)
        server.closeAllConnections()
      }),
  )
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  return receiver
}

async function openCarrier() {
  const { url, pool } = await testDatabase()
  const database = openDatabase(url, { maxConnections: 4, onError: () => {} })
  releaseLater(() => database.close())
  const store = createEventOutbox(database)
  const metrics = createMetrics({ process: 'worker' })
  const log = createLog({ level: 'silent', process: 'test' })
  return {
    store,
    pool,
    start(receivers: readonly Receiver[], over: EventOutbox = store) {
      const carrier = startEventDispatcher({ store: over, receivers, metrics, log })
      releaseLater(() => carrier.stop())
      return carrier
    },
    add: (n: number, app = 'shop', type: (typeof eventTypes)[number] = 'notice.sent') =>
      store.add({ app, type, data: { n } }),
    pauseOf: async (n: number) =>
      (
        await pool.query(
          `SELECT (extract(epoch FROM due_at - now()) * 1000)::float8 AS ms, tries FROM event
           WHERE data ->> 'n' = $1`,
          [String(n)],
        )
      ).rows[0] as { ms: number; tries: number } | undefined,
    count: async () => (await pool.query('SELECT count(*)::int AS n FROM event')).rows[0].n,
    told: async (outcome: string, type = 'notice.sent') => {
      const { values } = await metrics.events.get()
      return (
        values.find(({ labels }) => labels.outcome === outcome && labels.type === type)?.value ?? 0
      )
    },
  }
}

test('wantedEventTypes: what some receiver wants; one that names none wants all', () => {
  const receiver = { url: 'http://x', secret }
  expect(wantedEventTypes([], eventTypes)).toEqual([])
  expect(wantedEventTypes([receiver], eventTypes)).toEqual([...eventTypes])
  expect(
    wantedEventTypes(
      [
        { ...receiver, types: ['notice.sent'] },
        { ...receiver, types: ['captcha.passed', 'notice.sent'] },
      ],
      eventTypes,
    ).sort(),
  ).toEqual(['captcha.passed', 'notice.sent'])
})

test('2xx takes an event; anything else, a redirection too, brings it again after its pause', async () => {
  const statuses = [200, 299, 300, 302, 404, 410, 500]
  const receiver = await startReceiver((n) => statuses[n] as number)
  const carrier = await openCarrier()
  const before = Date.now()
  await Promise.all(statuses.map((_, n) => carrier.add(n)))
  carrier.start([{ url: receiver.url, secret }])
  await eventually(async () => (await carrier.count()) === 5 && receiver.told.length >= 7)
  for (const n of [2, 3, 4, 5, 6]) {
    const { ms, tries } = (await eventually(() => carrier.pauseOf(n))) as {
      ms: number
      tries: number
    }
    expect(tries).toBe(1)
    expect(ms).toBeGreaterThan(500)
    expect(ms).toBeLessThanOrEqual(5_000)
  }
  expect(await carrier.told('taken')).toBe(2)
  expect(await carrier.told('failed')).toBe(5)
  expect(await carrier.told('given_up')).toBe(0)
  for (const { isSigned, contentType, body } of receiver.told) {
    expect(isSigned).toBe(true)
    expect(contentType).toBe('application/json')
    expect(body.type).toBe('notice.sent')
    expect(Math.abs(Date.parse(body.timestamp) - before)).toBeLessThan(60_000)
  }
  expect(new Set(receiver.told.map(({ id }) => id)).size).toBe(7)
})

test('pauses double with each try up to an hour, under the same id and the time of the event', async () => {
  const receiver = await startReceiver(() => 500)
  const carrier = await openCarrier()
  await Promise.all([1, 2, 3].map((n) => carrier.add(n)))
  // As if the second had failed three times and the third forty times.
  await carrier.pool.query(
    `UPDATE event SET created_at = now() - interval '1 h',
       tries = CASE data ->> 'n' WHEN '1' THEN 0 WHEN '2' THEN 3 ELSE 40 END`,
  )
  carrier.start([{ url: receiver.url, secret }])
  await eventually(async () => (await carrier.told('failed')) === 3)
  const limits = new Map([
    [1, [5_000, 1]],
    [2, [40_000, 4]],
    [3, [3_600_000, 41]],
  ])
  for (const [n, [fullMs = 0, tries]] of limits) {
    await eventually(async () => {
      const row = await carrier.pauseOf(n)
      expect(row?.tries).toBe(tries)
      expect(row?.ms).toBeLessThanOrEqual(fullMs)
      expect(row?.ms).toBeGreaterThan(fullMs / 2 - 2_000)
      return true
    })
  }
  for (const { body } of receiver.told) {
    expect(Date.now() - Date.parse(body.timestamp)).toBeGreaterThan(3_500_000)
  }
  await carrier.pool.query('UPDATE event SET due_at = now()')
  await eventually(() => receiver.told.length === 6)
  expect(new Set(receiver.told.map(({ id }) => id)).size).toBe(3)
})

test('an event of the day before is tried once more, then given up; a younger one is not', async () => {
  const receiver = await startReceiver((n) => (n === 3 ? 204 : 500))
  const carrier = await openCarrier()
  await Promise.all([1, 2, 3].map((n) => carrier.add(n)))
  await carrier.pool.query(
    `UPDATE event SET created_at = now() - CASE WHEN data ->> 'n' = '2' THEN interval '23 h' ELSE interval '25 h' END`,
  )
  carrier.start([{ url: receiver.url, secret }])
  await eventually(async () => (await carrier.count()) === 1)
  expect(receiver.told).toHaveLength(3)
  expect((await carrier.pauseOf(2))?.tries).toBe(1)
  expect(await carrier.told('given_up')).toBe(1)
  expect(await carrier.told('taken')).toBe(1)
  expect(await carrier.told('failed')).toBe(1)
})

test('type and app choose the first receiver that fits; what none wants goes without a call', async () => {
  const [one, two, three] = [await startReceiver(), await startReceiver(), await startReceiver()]
  const carrier = await openCarrier()
  await Promise.all([
    carrier.add(1, 'shop', 'notice.sent'),
    carrier.add(2, 'bank', 'notice.failed'),
    carrier.add(3, 'shop', 'notice.failed'),
    carrier.add(4, 'bank', 'notice.sent'),
    carrier.add(5, 'bank', 'captcha.passed'),
  ])
  carrier.start([
    { url: one.url, secret, app: ['shop'], types: ['notice.sent'] },
    { url: two.url, secret, types: ['notice.failed'] },
    { url: three.url, secret, app: ['bank', 'shop'], types: ['notice.sent', 'notice.failed'] },
  ])
  await eventually(async () => (await carrier.count()) === 0)
  const numbers = (receiver: typeof one) => receiver.told.map(({ body }) => body.data.n).sort()
  expect(numbers(one)).toEqual([1])
  expect(numbers(two)).toEqual([2, 3])
  expect(numbers(three)).toEqual([4])
  expect(await carrier.told('taken', 'captcha.passed')).toBe(0)
})

test('a receiver that gave no answer: its events are put off without a call, then one asks for all', async () => {
  const [silent, healthy] = [await startReceiver(() => -1), await startReceiver()]
  const carrier = await openCarrier()
  carrier.start([
    { url: silent.url, secret, app: ['silent'] },
    { url: healthy.url, secret },
  ])
  await carrier.add(1, 'silent')
  await eventually(async () => (await carrier.told('failed')) === 1)
  const silentSinceMs = performance.now()
  // What comes next is not called for: put off for as long as the receiver is left alone, or longer.
  await carrier.pool.query(
    `INSERT INTO event (app, type, data, tries, created_at)
     SELECT 'silent', 'notice.sent', jsonb_build_object('n', n), CASE n WHEN 3 THEN 6 ELSE 0 END,
            now() - CASE n WHEN 4 THEN interval '25 h' ELSE interval '0' END
     FROM generate_series(2, 4) AS n`,
  )
  await carrier.add(5)
  await eventually(() => healthy.told.length === 1)
  await eventually(async () => (await carrier.told('given_up')) === 1)
  await eventually(async () => {
    const [second, third] = [await carrier.pauseOf(2), await carrier.pauseOf(3)]
    expect(second?.tries).toBe(1)
    expect(second?.ms).toBeGreaterThan(2_000)
    expect(second?.ms).toBeLessThanOrEqual(11_000)
    expect(third?.ms).toBeGreaterThan(150_000)
  })
  expect(silent.told).toHaveLength(1)
  expect(await carrier.told('failed')).toBe(1)
  expect(await carrier.count()).toBe(3)

  // When its time is over a single event is called for; those beside it wait for what comes of that.
  silent.statusOf = () => 0
  await eventually(
    async () => {
      await carrier.pool.query(`UPDATE event SET due_at = now()`)
      return silent.told.length > 1
    },
    { withinMs: 20_000, everyMs: 500 },
  )
  expect(performance.now() - silentSinceMs).toBeGreaterThan(9_000)
  await eventually(async () => {
    const { rows } = await carrier.pool.query('SELECT 1 FROM event WHERE due_at <= now()')
    return rows.length === 0
  })
  expect(silent.told).toHaveLength(2)
}, 60_000)

test('a receiver that answers, whatever it says, is not left alone', async () => {
  const receiver = await startReceiver((n) => (n === 1 ? 503 : 204))
  const carrier = await openCarrier()
  carrier.start([{ url: receiver.url, secret }])
  await carrier.add(1)
  await eventually(async () => (await carrier.told('failed')) === 1)
  await carrier.add(2)
  await eventually(async () => (await carrier.told('taken')) === 1)
})

test('1,000 events do not wait a second for every fifty', async () => {
  const receiver = await startReceiver()
  const carrier = await openCarrier()
  await carrier.pool.query(
    `INSERT INTO event (app, type, data)
     SELECT 'shop', 'notice.sent', jsonb_build_object('n', n) FROM generate_series(1, 1000) AS n`,
  )
  carrier.start([{ url: receiver.url, secret }])
  // One pass each second would take fifteen at least.
  await eventually(async () => (await carrier.count()) === 0, { withinMs: 13_000 })
  expect(receiver.told).toHaveLength(1_000)
}, 30_000)

test('a pass that fails is followed by another; stop waits for the calls under way', async () => {
  const receiver = await startReceiver()
  const carrier = await openCarrier()
  let failures = 0
  const running = carrier.start([{ url: receiver.url, secret }], {
    ...carrier.store,
    take: (...args) => {
      failures += 1
      return failures === 1 ? Promise.reject(new Error('away')) : carrier.store.take(...args)
    },
  })
  await carrier.add(1)
  await eventually(() => receiver.told.length === 1)
  await eventually(async () => (await carrier.count()) === 0)
  receiver.statusOf = () => 0
  await carrier.add(2)
  await eventually(() => receiver.told.length === 2)
  // Nobody else may take it before the call can have ended, which is after 5 s.
  const lease = await carrier.pauseOf(2)
  expect(lease?.ms).toBeGreaterThan(7_000)
  expect(lease?.ms).toBeLessThanOrEqual(15_000)
  await running.stop()
  // Its call was ended and the event put off, not lost.
  expect(await carrier.pauseOf(2)).toMatchObject({ tries: 1 })
  await carrier.add(3)
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  expect(receiver.told).toHaveLength(2)
})
