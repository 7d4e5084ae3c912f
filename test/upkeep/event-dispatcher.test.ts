import { expect, test, vi } from 'vitest'
import { eventTypes } from '../../src/base/event-types.ts'
import { isSignedWebhook } from '../../src/crypto/standard-webhooks.ts'
import { wantedEventTypes } from '../../src/upkeep/event-dispatcher.ts'
import { eventually } from '../tools/wait.ts'
import { openOutbox, secret } from './open-outbox.ts'
import { startReceiver } from './receiver.ts'

/** A test waits for the effect of a pass, not for its time. */
const pollMs = 50

test('wantedEventTypes: what some receiver wants; one that names none wants all', () => {
  const receiver = { url: 'http://x', secret }
  expect(wantedEventTypes([])).toEqual([])
  expect(wantedEventTypes([receiver])).toEqual([...eventTypes])
  expect(
    wantedEventTypes([
      { ...receiver, types: ['notice.sent'] },
      { ...receiver, types: ['captcha.passed', 'notice.sent'] },
    ]).sort(),
  ).toEqual(['captcha.passed', 'notice.sent'])
})

test('2xx takes an event; anything else, a redirection too, brings it again after its pause', async () => {
  const statuses = [200, 299, 300, 302, 404, 410, 500]
  const receiver = await startReceiver(({ event }) => statuses[event.data.n] as number)
  const outbox = await openOutbox({ pollMs, isClockFrozen: true })
  const before = Date.now()
  await Promise.all(statuses.map((_, n) => outbox.add(n)))
  outbox.start([{ url: receiver.url, secret }])
  await eventually(async () => (await outbox.count()) === 5 && receiver.told.length >= 7)
  for (const n of [2, 3, 4, 5, 6]) {
    // Until its answer is written, the event is due when its lease of 15 s ends.
    await eventually(async () => {
      const row = await outbox.pauseOf(n)
      expect(row?.tries).toBe(1)
      expect(row?.ms).toBeLessThanOrEqual(5_000)
    })
  }
  expect(await outbox.told('taken')).toBe(2)
  expect(await outbox.told('failed')).toBe(5)
  expect(await outbox.told('given_up')).toBe(0)
  for (const { headers, raw, event } of receiver.told) {
    expect(isSignedWebhook(secret, headers, raw, Date.now())).toBe(true)
    expect(headers['content-type']).toBe('application/json')
    expect(event.type).toBe('notice.sent')
    expect(Math.abs(Date.parse(event.timestamp) - before)).toBeLessThan(60_000)
  }
  expect(new Set(receiver.told.map(({ id }) => id)).size).toBe(7)
})

test('pauses double with each try up to an hour, under the same id and the time of the event', async () => {
  const receiver = await startReceiver(() => 500)
  const outbox = await openOutbox({ pollMs, isClockFrozen: true })
  await Promise.all([1, 2, 3].map((n) => outbox.add(n)))
  // As if the second had failed three times and the third forty times.
  await outbox.pool.query(
    `UPDATE event SET created_at = now() - interval '1 h',
       tries = CASE data ->> 'n' WHEN '1' THEN 0 WHEN '2' THEN 3 ELSE 40 END`,
  )
  outbox.start([{ url: receiver.url, secret }])
  await eventually(async () => (await outbox.told('failed')) === 3)
  const limits = new Map([
    [1, [5_000, 1]],
    [2, [40_000, 4]],
    [3, [3_600_000, 41]],
  ])
  for (const [n, [fullMs = 0, tries]] of limits) {
    await eventually(async () => {
      const row = await outbox.pauseOf(n)
      expect(row?.tries).toBe(tries)
      expect(row?.ms).toBeLessThanOrEqual(fullMs)
      expect(row?.ms).toBeGreaterThanOrEqual(fullMs / 2)
    })
  }
  for (const { event } of receiver.told) {
    expect(Date.now() - Date.parse(event.timestamp)).toBeGreaterThan(3_500_000)
  }
  await outbox.pool.query("UPDATE event SET due_at = now() - interval '1 s'")
  await eventually(() => receiver.told.length === 6)
  expect(new Set(receiver.told.map(({ id }) => id)).size).toBe(3)
})

test('an event of the day before with nine tries is tried once more, then given up; a younger one is not', async () => {
  const receiver = await startReceiver(({ event }) => (event.data.n === 3 ? 204 : 500))
  const outbox = await openOutbox({ pollMs, isClockFrozen: true })
  await Promise.all([1, 2, 3].map((n) => outbox.add(n)))
  await outbox.pool.query(
    `UPDATE event SET tries = 9, created_at = now() - CASE WHEN data ->> 'n' = '2' THEN interval '23 h' ELSE interval '25 h' END`,
  )
  outbox.start([{ url: receiver.url, secret }])
  await eventually(async () => (await outbox.count()) === 1)
  expect(receiver.told).toHaveLength(3)
  await eventually(async () => expect((await outbox.pauseOf(2))?.tries).toBe(10))
  expect(await outbox.told('given_up')).toBe(1)
  expect(await outbox.told('taken')).toBe(1)
  expect(await outbox.told('failed')).toBe(1)
})

test('type and app choose the first receiver that fits; what none wants goes without a call', async () => {
  const [one, two, three] = [await startReceiver(), await startReceiver(), await startReceiver()]
  const outbox = await openOutbox({ pollMs })
  await Promise.all([
    outbox.add(1, 'shop', 'notice.sent'),
    outbox.add(2, 'bank', 'notice.failed'),
    outbox.add(3, 'shop', 'notice.failed'),
    outbox.add(4, 'bank', 'notice.sent'),
    outbox.add(5, 'bank', 'captcha.passed'),
  ])
  outbox.start([
    { url: one.url, secret, app: ['shop'], types: ['notice.sent'] },
    { url: two.url, secret, types: ['notice.failed'] },
    { url: three.url, secret, app: ['bank', 'shop'], types: ['notice.sent', 'notice.failed'] },
  ])
  await eventually(async () => (await outbox.count()) === 0)
  const numbers = (receiver: typeof one) => receiver.told.map(({ event }) => event.data.n).sort()
  expect(numbers(one)).toEqual([1])
  expect(numbers(two)).toEqual([2, 3])
  expect(numbers(three)).toEqual([4])
  expect(await outbox.told('taken', 'captcha.passed')).toBe(0)
})

test('a receiver that gives any answer is not left alone', async () => {
  const receiver = await startReceiver(({ event }) => (event.data.n === 1 ? 503 : 204))
  const outbox = await openOutbox({ pollMs })
  outbox.start([{ url: receiver.url, secret }])
  await outbox.add(1)
  await eventually(async () => (await outbox.told('failed')) === 1)
  await outbox.add(2)
  await eventually(async () => (await outbox.told('taken')) === 1)
})

test('a receiver that answers slowly: at most 50 of its calls are under way, others get their events meanwhile, and it gets all in the end', async () => {
  const { promise: isReady, resolve: answer } = Promise.withResolvers<void>()
  const slow = await startReceiver(async () => {
    await isReady
    return 204
  })
  const quick = await startReceiver()
  const outbox = await openOutbox({ pollMs })
  await outbox.pool.query(
    `INSERT INTO event (app, type, data) SELECT 'slow', 'notice.sent', '{}' FROM generate_series(1, 120)`,
  )
  await outbox.pool.query(
    `INSERT INTO event (app, type, data) SELECT 'quick', 'notice.sent', '{}' FROM generate_series(1, 20)`,
  )
  outbox.start([
    { url: slow.url, secret, app: ['slow'] },
    { url: quick.url, secret },
  ])
  await eventually(() => slow.told.length === 50)
  await eventually(() => quick.told.length === 20)
  // None of the slow calls has ended.
  expect(await outbox.told('failed')).toBe(0)
  expect(slow.told).toHaveLength(50)
  // The others lose no try while they wait. Otherwise the first failure could be their last, or pause them for an hour.
  await eventually(async () => {
    const { rows } = await outbox.pool.query(
      `SELECT sum(tries)::int AS tries, count(*)::int AS events FROM event WHERE NOT id = ANY($1)`,
      [slow.told.map(({ id }) => id)],
    )
    expect(rows).toEqual([{ tries: 0, events: 70 }])
  })
  answer()
  await eventually(async () => (await outbox.count()) === 0)
  expect(slow.told).toHaveLength(120)
})

test('an event that is old because no worker ran is not given up while its receiver is silent, nor after one failure', async () => {
  const [silent, failing] = [await startReceiver(() => -1), await startReceiver(() => 500)]
  const outbox = await openOutbox({ pollMs })
  await outbox.pool.query(
    `INSERT INTO event (app, type, data, created_at)
     SELECT CASE WHEN n = 6 THEN 'failing' ELSE 'silent' END, 'notice.sent', '{}', now() - interval '25 h'
     FROM generate_series(1, 6) AS n`,
  )
  outbox.start([
    { url: silent.url, secret, app: ['silent'] },
    { url: failing.url, secret },
  ])
  await eventually(async () => (await outbox.told('failed')) >= 2)
  // Became due when the receiver was already silent.
  await outbox.pool.query(
    `INSERT INTO event (app, type, data, created_at) VALUES ('silent', 'notice.sent', '{"n":7}', now() - interval '25 h')`,
  )
  await eventually(async () => expect((await outbox.pauseOf(7))?.tries).toBe(1))
  expect(await outbox.told('given_up')).toBe(0)
  expect(await outbox.count()).toBe(7)
})

test('stop aborts the last call for an old event: it is not given up', async () => {
  const receiver = await startReceiver(() => 0)
  const outbox = await openOutbox({ pollMs })
  const running = outbox.start([{ url: receiver.url, secret }])
  await outbox.pool.query(
    `INSERT INTO event (app, type, data, tries, created_at)
     VALUES ('shop', 'notice.sent', '{}', 30, now() - interval '25 h')`,
  )
  await eventually(() => receiver.told.length === 1)
  await running.stop()
  expect(await outbox.told('given_up')).toBe(0)
  expect(await outbox.count()).toBe(1)
})

test('a pass that fails is followed by another; stop waits for the calls under way', async () => {
  const receiver = await startReceiver()
  const outbox = await openOutbox({ pollMs, isClockFrozen: true })
  let failures = 0
  const running = outbox.start([{ url: receiver.url, secret }], {
    ...outbox.store,
    take: (...args) => {
      failures += 1
      return failures === 1 ? Promise.reject(new Error('away')) : outbox.store.take(...args)
    },
  })
  await outbox.add(1)
  await eventually(() => receiver.told.length === 1)
  await eventually(async () => (await outbox.count()) === 0)
  receiver.statusOf = () => 0
  await outbox.add(2)
  await eventually(() => receiver.told.length === 2)
  // No other process may take it before the call can have ended, which is after 5 s.
  const lease = await outbox.pauseOf(2)
  expect(lease?.ms).toBe(15_000)
  await running.stop()
  // Its call was ended, and the event was put off and not lost.
  expect(await outbox.pauseOf(2)).toMatchObject({ tries: 1 })
  await outbox.add(3)
  // Six passes, if there were any.
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(receiver.told).toHaveLength(2)
})

test('while no event is due, one look each pause', async () => {
  const outbox = await openOutbox({ pollMs: 1_000 })
  let looks = 0
  const take = async () => {
    looks += 1
    return []
  }
  const settle = async () => {}
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const dispatcher = outbox.start([], { ...outbox.store, take, settle })
    await vi.advanceTimersByTimeAsync(20_000)
    await dispatcher.stop()
  } finally {
    vi.useRealTimers()
  }
  // Pauses vary by a quarter.
  expect(looks).toBeGreaterThanOrEqual(15)
  expect(looks).toBeLessThanOrEqual(28)
})
