import { expect, test } from 'vitest'
import { eventually } from '../tools/wait.ts'
import { openOutbox, secret } from './open-outbox.ts'
import { startReceiver } from './receiver.ts'

test('a receiver that gave no answer: its events are put off without a call, then one asks for all', async () => {
  const [silent, healthy] = [await startReceiver(() => -1), await startReceiver()]
  const outbox = await openOutbox()
  outbox.start([
    { url: silent.url, secret, app: ['silent'] },
    { url: healthy.url, secret },
  ])
  const startMs = performance.now()
  await outbox.add(1, 'silent')
  await eventually(async () => (await outbox.told('failed')) === 1)
  // The next events are not sent: they are put off until the receiver is tried again, or longer.
  await outbox.pool.query(
    `INSERT INTO event (app, type, data, tries, created_at)
     SELECT 'silent', 'notice.sent', jsonb_build_object('n', n), CASE n WHEN 3 THEN 6 WHEN 4 THEN 9 ELSE 0 END,
            now() - CASE n WHEN 4 THEN interval '25 h' ELSE interval '0' END
     FROM generate_series(2, 4) AS n`,
  )
  await outbox.add(5)
  await eventually(() => healthy.told.length === 1)
  await eventually(async () => (await outbox.told('given_up')) === 1)
  await eventually(async () => {
    const [second, third] = [await outbox.pauseOf(2), await outbox.pauseOf(3)]
    expect(second?.tries).toBe(1)
    expect(second?.ms).toBeGreaterThan(2_000)
    expect(second?.ms).toBeLessThanOrEqual(11_000)
    expect(third?.ms).toBeGreaterThan(150_000)
  })
  expect(silent.told).toHaveLength(1)
  expect(await outbox.told('failed')).toBe(1)
  expect(await outbox.count()).toBe(3)

  // When that time has ended, a single event is sent. The others wait for its result.
  silent.statusOf = () => 0
  await eventually(
    async () => {
      await outbox.pool.query(`UPDATE event SET due_at = now() - interval '1 s'`)
      return silent.told.length > 1
    },
    { everyMs: 500 },
  )
  expect(performance.now() - startMs).toBeGreaterThan(9_000)
  // Events that became due after they were taken are put off when the call has timed out.
  await eventually(async () => {
    const { rows } = await outbox.pool.query('SELECT 1 FROM event WHERE due_at <= now()')
    return rows.length === 0
  })
  expect(silent.told).toHaveLength(2)
})

test('a receiver that hangs does not delay the others, and gets all of its events when it is back', async () => {
  const [hanging, healthy] = [await startReceiver(), await startReceiver()]
  const outbox = await openOutbox()
  outbox.start([
    { url: hanging.url, secret, app: ['slow'] },
    { url: healthy.url, secret },
  ])
  hanging.statusOf = () => 0
  // More than six passes could send: 50 events each, and 5 s for each call that hangs.
  await outbox.pool.query(
    `INSERT INTO event (app, type, data) SELECT 'slow', 'notice.sent', '{}' FROM generate_series(1, 300)`,
  )
  await eventually(() => hanging.told.length > 0)
  await outbox.add(1, 'fast')
  await eventually(() => healthy.told.length === 1)

  const before = new Set(hanging.told.map(({ id }) => id)).size
  expect(before).toBeLessThan(300)
  hanging.statusOf = () => 204
  await eventually(() => new Set(hanging.told.map(({ id }) => id)).size === 300, {
    withinMs: 60_000,
  })
  await eventually(async () => (await outbox.count()) === 0)
}, 120_000)

test('600 events do not wait a second for every fifty', async () => {
  const receiver = await startReceiver()
  const outbox = await openOutbox({ pollMs: 20_000 })
  await outbox.pool.query(
    `INSERT INTO event (app, type, data)
     SELECT 'shop', 'notice.sent', jsonb_build_object('n', n) FROM generate_series(1, 600) AS n`,
  )
  outbox.start([{ url: receiver.url, secret }])
  // One pass of fifty each 20 s would take 220 s.
  await eventually(async () => (await outbox.count()) === 0, { withinMs: 120_000 })
  expect(receiver.told).toHaveLength(600)
})
