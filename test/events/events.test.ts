import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { signWebhook } from '../../src/crypto/standard-webhooks.ts'
import { maskRecipient } from '../../src/recipient/mask-recipient.ts'
import { settleOne } from '../faults/ledger.ts'
import { type Fleet, farEndSecret, freshPhone, startFleet } from '../support/fleet.ts'
import { releaseLater } from '../support/release.ts'
import { eventually } from '../support/wait.ts'

const secret = `whsec_${Buffer.from('the key of the event tests').toString('base64')}`

interface Told {
  readonly headers: IncomingHttpHeaders
  readonly raw: string
  readonly event: { type: string; timestamp: string; data: Record<string, unknown> }
}

/** A receiver that keeps what it is told and answers as it is set: a status, or never with 0. */
async function startReceiver() {
  const receiver = { url: '', told: [] as Told[], status: 204 }
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.once('end', () => {
      const raw = Buffer.concat(chunks).toString()
      receiver.told.push({ headers: incoming.headers, raw, event: JSON.parse(raw) })
      if (receiver.status !== 0) response.writeHead(receiver.status).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  releaseLater(
    () =>
      new Promise((resolve) => {
        server.close(resolve)
        server.closeAllConnections()
      }),
  )
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/events`
  return receiver
}

/** Standard Webhooks as its text describes it, by WebCrypto and nothing of ours. */
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

const idOf = ({ headers }: Told) => headers['webhook-id']
const left = async (fleet: Fleet) =>
  (await fleet.query<{ count: number }>('SELECT count(*)::int AS count FROM event'))[0]?.count

/** As if the pause before the next try were over. */
const letPass = (fleet: Fleet) => fleet.query('UPDATE event SET due_at = now()')

test('sent, failed, passed and locked are told once, signed, masked and without the code (I14)', async () => {
  const receiver = await startReceiver()
  const fleet = await startFleet({ policyFile: { events: { url: receiver.url, secret } } })
  const [good, bad, locked] = [freshPhone(), freshPhone(), freshPhone()]
  const codes = new Map<string, string>()
  fleet.farEnd.behave = ({ to, text }) => {
    codes.set(to, /\d{4}/.exec(text)?.[0] ?? '')
    return { status: to === bad ? 422 : 200 }
  }
  const sent = await fleet.send(good)
  const failed = await fleet.send(bad)
  expect(await settleOne(fleet, sent.body.id)).toBe('sent')
  expect(await settleOne(fleet, failed.body.id)).toBe('failed')
  const check = (to: string, code: string) =>
    fleet.post('/v1/captchas/check', { channel: 'sms', to, code })
  expect((await check(good, codes.get(good) as string)).status).toBe(200)
  // The fourth begins the lock, the fifth finds it.
  for (let guess = 0; guess < 5; guess++) await check(locked, '0000')

  const told = await eventually(() => receiver.told.length >= 4 && receiver.told, {
    withinMs: 10_000,
  })
  const byType = new Map(told.map((one) => [one.event.type, one.event.data]))
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
  await eventually(async () => (await left(fleet)) === 0)
  expect(told).toHaveLength(4)
}, 60_000)

test('a worker killed between the move and the telling: another tells it, under the same id', async () => {
  const receiver = await startReceiver()
  const fleet = await startFleet({ policyFile: { events: { url: receiver.url, secret } } })
  receiver.status = 0
  const { body } = await fleet.send(freshPhone())
  const [first] = await eventually(() => receiver.told.length > 0 && receiver.told)
  await fleet.workers[0]?.kill()
  expect(await left(fleet)).toBe(1)

  receiver.status = 204
  await fleet.startWorker()
  await letPass(fleet)
  const again = await eventually(() => receiver.told[1] ?? false, { withinMs: 10_000 })
  expect(idOf(again)).toBe(idOf(first as Told))
  expect(again.event).toMatchObject({ type: 'notice.sent', data: { id: body.id } })
  await eventually(async () => (await left(fleet)) === 0)
}, 60_000)

test('a receiver that is down: told again with growing pauses, and given up after a day', async () => {
  const receiver = await startReceiver()
  const fleet = await startFleet({ policyFile: { events: [{ url: receiver.url, secret }] } })
  receiver.status = 503
  await fleet.send(freshPhone())
  for (let tries = 1; tries <= 4; tries++) {
    await eventually(() => receiver.told.length === tries, { withinMs: 20_000 })
    // Half of 5 s and more, doubled with each try, and no longer the lease of the call.
    await eventually(
      async () => {
        const [row] = await fleet.query<{ pauseMs: number }>(
          `SELECT extract(epoch FROM due_at - now()) * 1000 AS "pauseMs" FROM event`,
        )
        const fullMs = 5_000 * 2 ** (tries - 1)
        const pauseMs = Number(row?.pauseMs)
        expect(pauseMs).toBeGreaterThan(fullMs / 2 - 2_000)
        expect(pauseMs).toBeLessThanOrEqual(fullMs)
      },
      { withinMs: 15_000 },
    )
    await letPass(fleet)
  }
  expect(new Set(receiver.told.map(idOf)).size).toBe(1)
  expect(receiver.told).toHaveLength(4)

  await fleet.query(`UPDATE event SET created_at = created_at - interval '25 h'`)
  await letPass(fleet)
  await eventually(async () => (await left(fleet)) === 0, { withinMs: 10_000 })
  await eventually(() => fleet.workers[0]?.output().includes('given up') ?? false, {
    withinMs: 15_000,
  })
}, 120_000)

test('a receiver that hangs does not hold up the others, and gets all of its events when it is back', async () => {
  const [hanging, healthy] = [await startReceiver(), await startReceiver()]
  const fleet = await startFleet({
    policyFile: {
      events: [
        { url: hanging.url, secret, app: 'slow' },
        { url: healthy.url, secret },
      ],
    },
  })
  hanging.status = 0
  // More than six passes could tell: of 50, and of 5 s each where a call hangs.
  await fleet.query(
    `INSERT INTO event (app, type, data) SELECT 'slow', 'notice.sent', '{}' FROM generate_series(1, 300)`,
  )
  await eventually(() => hanging.told.length > 0)
  await fleet.query(`INSERT INTO event (app, type, data) VALUES ('fast', 'notice.sent', '{}')`)
  await eventually(() => healthy.told.length === 1, { withinMs: 10_000 })

  const before = new Set(hanging.told.map(idOf)).size
  expect(before).toBeLessThan(300)
  hanging.status = 204
  await eventually(() => new Set(hanging.told.map(idOf)).size === 300, { withinMs: 60_000 })
  await eventually(async () => (await left(fleet)) === 0, { withinMs: 20_000 })
}, 120_000)

test('delivered by a receipt is told too', async () => {
  const receiver = await startReceiver()
  const fleet = await startFleet({
    policyFile: { events: { url: receiver.url, secret, types: ['notice.delivered'] } },
  })
  const { body } = await fleet.send(freshPhone())
  expect(await settleOne(fleet, body.id)).toBe('sent')
  const receipt = JSON.stringify({ noticeId: body.id, outcome: 'delivered' })
  const reply = await fetch(`${fleet.apis[0]?.url}/v1/receipts/far`, {
    method: 'POST',
    body: receipt,
    headers: {
      connection: 'close',
      ...signWebhook(farEndSecret, 'receipt-1', Date.now(), receipt),
    },
  })
  expect(reply.status).toBe(204)
  const [told] = await eventually(() => receiver.told.length > 0 && receiver.told)
  expect(told?.event).toMatchObject({
    type: 'notice.delivered',
    data: { id: body.id, state: 'delivered', provider: 'far' },
  })
}, 60_000)

describe('who is told what', () => {
  test('types and app choose the receiver; what nobody wants is not written', async () => {
    const [others, failures] = [await startReceiver(), await startReceiver()]
    const fleet = await startFleet({
      policyFile: {
        events: [
          { url: others.url, secret, app: 'other' },
          { url: failures.url, secret, types: ['notice.failed'], app: ['default'] },
        ],
      },
    })
    fleet.farEnd.behave = ({ nth }) => ({ status: nth > 0 ? 422 : 200 })
    await fleet.send(freshPhone())
    await eventually(() => failures.told.length === 1, { withinMs: 10_000 })
    await eventually(async () => (await left(fleet)) === 0)
    expect(others.told).toEqual([])
  }, 60_000)

  test('nobody configured: a move writes no event', async () => {
    const fleet = await startFleet()
    const { body } = await fleet.send(freshPhone())
    expect(await settleOne(fleet, body.id)).toBe('sent')
    expect(await left(fleet)).toBe(0)
  }, 60_000)
})
