import { describe, expect, test } from 'vitest'
import { signWebhook } from '../../src/crypto/standard-webhooks.ts'
import { maskRecipient } from '../../src/recipient/channels.ts'
import { freshPhone } from '../delivery/notices.ts'
import { moveDatabaseClock, testDatabase } from '../tools/database.ts'
import { type FarEnd, startFarEnd } from '../tools/far-end.ts'
import { type Postern, processEnv, startPostern } from '../tools/postern.ts'
import { startProcess } from '../tools/processes.ts'
import { testRedis } from '../tools/redis.ts'
import { eventually } from '../tools/wait.ts'
import { startReceiver, type Told } from './receiver.ts'

const secret = `whsec_${Buffer.from('the key of the event tests').toString('base64')}`
const farEndSecret = 'a secret of the far end'

/** Sections of a policy file whose SMS go to a test provider, and whose events go to these receivers. */
function policyFileFor(farEnd: FarEnd, events?: unknown) {
  return {
    policies: {
      captcha: [],
      notice: [],
      check: [
        {
          name: 'guesses',
          key: '{channel}:{to}',
          lockout: { limit: 3, window: '5m', lock: '15m' },
        },
      ],
    },
    providers: { far: { kind: 'webhook', url: farEnd.url, secret: farEndSecret } },
    routes: { email: [{ use: ['far'] }], sms: [{ use: ['far'] }] },
    ...(events ? { events } : {}),
  }
}

async function startTelling(events?: unknown) {
  const farEnd = await startFarEnd()
  const postern = await startPostern({ policyFile: policyFileFor(farEnd, events) })
  return { postern, farEnd }
}

const send = (postern: Postern, to = freshPhone()) =>
  postern.post('/v1/captchas', { channel: 'sms', to })

/** Until it is in this state. */
const untilState = (postern: Postern, id: string, state: string) =>
  eventually(async () => {
    const { rows } = await postern.database.pool.query('SELECT state FROM notice WHERE id = $1', [
      id,
    ])
    expect(rows[0].state).toBe(state)
  })

/** Standard Webhooks as its text describes it, with WebCrypto and no code of Postern. */
async function isSigned({ headers, raw }: Told): Promise<boolean> {
  const key = await crypto.subtle.importKey(
    'raw',
    Uint8Array.from(atob(secret.slice('whsec_'.length)), (char) => char.charCodeAt(0)),
    { name: 'HMAC', hash: 'SHA-256' },
    false,
    ['verify'],
  )
  const [version, signature = ''] = String(headers['webhook-signature']).split(',')
  return (
    version === 'v1' &&
    Math.abs(Date.now() / 1_000 - Number(headers['webhook-timestamp'])) < 300 &&
    crypto.subtle.verify(
      'HMAC',
      key,
      Uint8Array.from(atob(signature), (char) => char.charCodeAt(0)),
      new TextEncoder().encode(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${raw}`),
    )
  )
}

async function left({ database }: Pick<Postern, 'database'>): Promise<number> {
  const { rows } = await database.pool.query('SELECT count(*)::int AS count FROM event')
  return rows[0].count
}

/** The time of a call, after which another worker sends the event. */
const leaseMs = 15_000

/** As if the pause before the next try had ended. */
const letPass = ({ database }: Pick<Postern, 'database'>) =>
  database.pool.query("UPDATE event SET due_at = now() - interval '1 h'")

test('sent, failed, passed and locked are sent once, signed, masked and without the code (I14)', async () => {
  const receiver = await startReceiver()
  const { postern, farEnd } = await startTelling({ url: receiver.url, secret })
  const [good, bad, locked] = [freshPhone(), freshPhone(), freshPhone()]
  const codes = new Map<string, string>()
  farEnd.behave = ({ to, text }) => {
    codes.set(to, /\d{4}/.exec(text)?.[0] ?? '')
    return { status: to === bad ? 422 : 200 }
  }
  const sent = await send(postern, good)
  const failed = await send(postern, bad)
  await untilState(postern, sent.body.id, 'sent')
  await untilState(postern, failed.body.id, 'failed')
  const check = (to: string, code: string) =>
    postern.post('/v1/captchas/check', { channel: 'sms', to, code })
  expect((await check(good, codes.get(good) as string)).status).toBe(200)
  // Without a valid code there is no event. The third wrong guess begins the lock, and two more are refused by it.
  for (let guess = 0; guess < 5; guess++) await check(freshPhone(), '0000')
  await send(postern, locked)
  const right = Number(await eventually(() => codes.get(locked) ?? false))
  const wrong = String((right + 1) % 10_000).padStart(4, '0')
  for (let guess = 0; guess < 5; guess++) await check(locked, wrong)

  const told = await eventually(() => receiver.told.length >= 5 && receiver.told, {
    withinMs: 60_000,
  })
  const ofLocked = maskRecipient('sms', locked)
  const isLock = ({ event: { type, data } }: Told) => type !== 'notice.sent' || data.to !== ofLocked
  const byType = new Map(told.filter(isLock).map((one) => [one.event.type, one.event.data]))
  expect(byType.get('notice.sent')).toEqual({
    id: sent.body.id,
    channel: 'sms',
    to: maskRecipient('sms', good),
    kind: 'captcha',
    scene: 'default',
    template: 'captcha',
    state: 'sent',
    provider: 'far',
    providerMessageId: `far-${sent.body.id}`,
  })
  expect(byType.get('notice.failed')).toMatchObject({ id: failed.body.id, error: 'rejected' })
  expect(byType.get('captcha.passed')).toEqual({
    id: sent.body.id,
    channel: 'sms',
    to: maskRecipient('sms', good),
    scene: 'default',
  })
  expect(byType.get('captcha.locked')).toMatchObject({ rule: 'guesses' })
  for (const one of told) {
    expect(await isSigned(one)).toBe(true)
    expect(one.raw).not.toContain(good.slice(-8))
    expect(one.raw).not.toMatch(/"code"|"text"/)
  }
  await eventually(async () => (await left(postern)) === 0)
  expect(told).toHaveLength(5)
})

test('a worker killed between the move and the event: another sends it, under the same id', async () => {
  const receiver = await startReceiver()
  const policyFile = policyFileFor(await startFarEnd(), { url: receiver.url, secret })
  // Under the prefix of a process, which is the worker here.
  const redis = { ...(await testRedis()), prefix: 'postern:' }
  const on = { redis, database: await testDatabase() }
  const postern = await startPostern({ policyFile, on, roles: { api: true, worker: false } })
  const env = processEnv({ policyFile, ...on })
  const worker = await startProcess('worker', { env })
  receiver.statusOf = () => 0
  const { body } = await send(postern)
  const first = await eventually(() => receiver.told[0] ?? false)
  await worker.kill()
  expect(await left(postern)).toBe(1)

  receiver.statusOf = () => 204
  await startPostern({ policyFile, on, roles: { api: false, worker: true } })
  await letPass(postern)
  const again = await eventually(() => receiver.told[1] ?? false)
  expect(again.id).toBe(first.id)
  expect(again.event).toMatchObject({ type: 'notice.sent', data: { id: body.id } })
  await eventually(async () => (await left(postern)) === 0)
})

test('a receiver that is down: sent again with growing pauses, and given up after a day', async () => {
  const receiver = await startReceiver(() => 503)
  const [redis, database] = [await testRedis(), await testDatabase()]
  // With PostgreSQL's clock standing still, no event comes again before the test has seen its pause.
  const nowMs = Date.now() + 60_000
  await moveDatabaseClock(database, `to_timestamp(${nowMs / 1_000})`)
  const policyFile = policyFileFor(await startFarEnd(), [{ url: receiver.url, secret }])
  const postern = await startPostern({ policyFile, on: { redis, database } })
  await send(postern)
  for (let tries = 1; tries <= 4; tries++) {
    await eventually(() => receiver.told.length === tries)
    // Half of at least 5 s, doubled with each try. Before it is written, the lease of the call is there.
    await eventually(async () => {
      const { rows } = await database.pool.query('SELECT due_at FROM event')
      const fullMs = 5_000 * 2 ** (tries - 1)
      const retryInMs = rows[0].due_at.getTime() - nowMs
      expect(retryInMs).not.toBe(leaseMs)
      expect(retryInMs).toBeGreaterThanOrEqual(fullMs / 2)
      expect(retryInMs).toBeLessThanOrEqual(fullMs)
    })
    await letPass(postern)
  }
  expect(new Set(receiver.told.map(({ id }) => id)).size).toBe(1)
  expect(receiver.told).toHaveLength(4)

  await postern.database.pool.query(
    `UPDATE event SET tries = 9, created_at = created_at - interval '25 h'`,
  )
  await letPass(postern)
  await eventually(async () => (await left(postern)) === 0)
  const metrics = await (await fetch(`${postern.adminUrl}/metrics`)).text()
  expect(metrics).toMatch(/^postern_events_total\{.*outcome="given_up".*\} 1$/m)
})

test('delivered by a receipt is sent too', async () => {
  const receiver = await startReceiver()
  const events = { url: receiver.url, secret, types: ['notice.delivered'] }
  const { postern } = await startTelling(events)
  const { body } = await send(postern)
  await untilState(postern, body.id, 'sent')
  const receipt = JSON.stringify({ noticeId: body.id, outcome: 'delivered' })
  const reply = await fetch(`${postern.url}/v1/receipts/far`, {
    method: 'POST',
    body: receipt,
    headers: { ...signWebhook(farEndSecret, 'receipt-1', Date.now(), receipt) },
  })
  expect(reply.status).toBe(204)
  const told = await eventually(() => receiver.told[0] ?? false)
  expect(told.event).toMatchObject({
    type: 'notice.delivered',
    data: { id: body.id, state: 'delivered', provider: 'far' },
  })
})

describe('receivers and their events', () => {
  test('types and app choose the receiver; an event without a receiver is not written', async () => {
    const [others, failures] = [await startReceiver(), await startReceiver()]
    const { postern, farEnd } = await startTelling([
      { url: others.url, secret, app: 'other' },
      { url: failures.url, secret, types: ['notice.failed'], app: ['default'] },
    ])
    farEnd.behave = () => ({ status: 422 })
    await send(postern)
    await eventually(() => failures.told.length === 1)
    await eventually(async () => (await left(postern)) === 0)
    expect(others.told).toEqual([])
  })

  test('no receiver configured: a change of state writes no event', async () => {
    const { postern } = await startTelling()
    const { body } = await send(postern)
    await untilState(postern, body.id, 'sent')
    expect(await left(postern)).toBe(0)
  })
})
