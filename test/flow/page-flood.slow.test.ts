/**
 * Strangers with the key of a page: the data that they can make Postern keep, and the callers that they can keep out.
 * Their addresses are in 127.0.0.0/8, which is this machine. `PAGE_FLOOD_SECONDS=60` runs the whole of I31.
 */
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createApiKeys } from '../../src/access/api-keys.ts'
import { connectRedis } from '../../src/storage/redis.ts'
import { databaseAt, testDatabase } from '../tools/database.ts'
import { ownRedis } from '../tools/own-servers.ts'
import { clientOf, processEnv } from '../tools/postern.ts'
import { startProcess } from '../tools/processes.ts'
import { publishableKey } from '../tools/publishable-key.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const seconds = Number(process.env.PAGE_FLOOD_SECONDS ?? 12)
const origin = 'https://shop.example'

interface Asked {
  path: string
  body?: object
  method?: string
  headers?: Record<string, string>
}

/** A caller with a separate address. */
function callerFrom(url: string, localAddress: string, key: string) {
  const agent = closeLater(new Agent({ keepAlive: true, maxSockets: 64 }), 'destroy')
  return ({
    path,
    body,
    method = 'POST',
    headers = {},
  }: Asked): Promise<{ status: number; text: string }> =>
    new Promise((resolve) => {
      const outgoing = request(
        url + path,
        {
          ...{ method, agent, localAddress },
          headers: {
            authorization: `Bearer ${key}`,
            'content-type': 'application/json',
            ...headers,
          },
        },
        (response) => {
          let text = ''
          response.setEncoding('utf8').on('data', (part: string) => {
            text += part
          })
          response.once('close', () => resolve({ status: response.statusCode ?? 0, text }))
        },
      )
      outgoing.once('error', () => resolve({ status: 0, text: '' }))
      outgoing.end(body && JSON.stringify(body))
    })
}

let numbers = 0
function newNumber(): string {
  numbers += 1
  return `+861${3_800_000_000 + numbers}`
}

/** The number of answers by status. */
const tally = () => {
  const counts = new Map<number, number>()
  return { counts, add: (status: number) => counts.set(status, (counts.get(status) ?? 0) + 1) }
}

test(
  `${seconds} s of every call a page may make, from eight addresses, at a Redis with 24 MB of room: what is kept is bounded, and another app's sends are all 202 (I31, F38)`,
  async () => {
    const server = await ownRedis()
    const redis = closeLater(
      connectRedis(server.url, 'command', () => {}),
      'disconnect',
    )
    await eventually(() => redis.status === 'ready')
    const database = await testDatabase()
    const env = processEnv({ redis: { url: server.url } as never, database })
    const api = await startProcess('api', { env })
    await startProcess('worker', { env })
    const pageKey = await publishableKey(database)
    const pool = databaseAt(database.url, 1)
    const { token: otherKey } = await createApiKeys(pool).create({ name: 'other', app: 'other' })
    const used = async () => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1])
    const atStart = await used()
    await redis.config('SET', 'maxmemory', String(atStart + 24 * 2 ** 20))

    const statuses = tally()
    let asked = 0
    let isOver = false
    async function strangerFrom(address: string): Promise<void> {
      const call = callerFrom(api.url, address, pageKey)
      const sent: string[] = []
      const kinds: (() => Asked)[] = [
        () => ({ path: '/v1/captchas', body: { channel: 'sms', to: newNumber() } }),
        () => ({
          ...{ path: '/v1/captchas', body: { channel: 'sms', to: newNumber() } },
          headers: { 'idempotency-key': `key-${++asked}` },
        }),
        () => ({
          path: '/v1/captchas/check',
          body: { channel: 'sms', to: newNumber(), code: '0000' },
        }),
        () => {
          const to = sent[asked % (sent.length || 1)] ?? newNumber()
          return { path: '/v1/captchas/check', body: { channel: 'sms', to, code: '0000' } }
        },
        () => ({
          path: '/v1/captchas/check',
          body: { channel: 'email', to: `a${++asked}@b.test`, code: '0000' },
        }),
        () => ({ path: '/v1/challenges', body: {} }),
        () => ({
          ...{
            path: '/v1/captchas',
            body: { channel: 'sms', to: newNumber(), challenge: 'bm9uZQ==' },
          },
        }),
        () => ({
          ...{ path: '/v1/captchas/check', method: 'OPTIONS' },
          headers: { origin: `https://${++asked}.test`, 'access-control-request-method': 'POST' },
        }),
      ]
      while (!isOver) {
        const one = (kinds[++asked % kinds.length] as () => Asked)()
        const { status } = await call(one)
        statuses.add(status)
        const { to } = (one.body ?? {}) as { to?: string }
        if (status === 202 && to) sent.push(to)
      }
    }
    releaseLater(() => {
      isOver = true
    })
    const strangers = Array.from({ length: 24 }, (_, at) => strangerFrom(`127.0.1.${1 + (at % 8)}`))
    const other = clientOf(api.url, otherKey)
    const startedAtMs = performance.now()
    const endsAt = startedAtMs + seconds * 1_000
    let accepted = 0
    // Also on a busy machine, until the limits are reached.
    const isMet = () => (statuses.counts.get(429) ?? 0) > 50
    while (performance.now() < endsAt || !isMet()) {
      accepted += 1
      const ip = `203.0.${accepted >> 8}.${accepted & 255}`
      // A busy machine may refuse a send once. A full Redis refuses every send.
      await eventually(async () => {
        const { status } = await other.post('/v1/captchas', { channel: 'sms', to: newNumber(), ip })
        expect(status).toBe(202)
      })
      // Ten a second at most, like a small app.
      await sleep(100)
    }
    isOver = true
    await Promise.all(strangers)
    const answered = [...statuses.counts.values()].reduce((sum, count) => sum + count, 0)
    // The flood was real, and the other app's requests came during it.
    expect(answered).toBeGreaterThan(seconds)
    expect(accepted).toBeGreaterThan(2)
    expect(statuses.counts.get(429)).toBeGreaterThan(50)
    // Sends and checks that the rules by address admit, some kilobytes each.
    const keptBytes = (await used()) - atStart
    expect(keptBytes).toBeLessThan(8 * 120 * 3_000 + accepted * 3_000 + 2 ** 20)
    // In PostgreSQL, rows about decisions: so many at once and in a second for each of two apps, and two for each send.
    const tookS = (performance.now() - startedAtMs) / 1_000
    const { rows: kept } = await database.pool.query(`
      SELECT (SELECT count(*) FROM decision WHERE recipient_hash IS NOT NULL)::int AS decisions,
             (SELECT count(*) FROM notice)::int AS sends`)
    expect(kept[0].decisions).toBeGreaterThan(0)
    expect(kept[0].decisions).toBeLessThan(
      2 * (240 + 6 * tookS) + 2 * kept[0].sends + 300 + 5 * tookS,
    )
    // No lock began for a recipient without a code, and no budget of a day was used. Such keys would live longer than
    // the code.
    const { rows } = await database.pool.query('SELECT count(*)::int AS count FROM idempotency_key')
    expect(rows[0].count).toBeLessThanOrEqual(8 * 60 + 24)
  },
  seconds * 1_000 + 240_000,
)

test('one address with 500 requests a second and Idempotency-Keys: eleven other visitors of the page are all answered (I32)', async () => {
  const redis = await testRedis()
  const database = await testDatabase()
  const env = processEnv({ redis, database })
  const api = await startProcess('api', { env })
  const pageKey = await publishableKey(database, { origins: [origin] })
  const flood = callerFrom(api.url, '127.0.2.1', pageKey)
  const statuses = tally()
  const send = (name: string): Asked => ({
    ...{ path: '/v1/captchas', body: { channel: 'sms', to: newNumber() } },
    headers: { 'idempotency-key': name },
  })
  let asked = 0
  const pending = new Set<Promise<void>>()
  const timer = setInterval(() => {
    // Behind a machine that answers fewer, more would only wait.
    for (let index = 0; index < 10 && pending.size < 200; index++) {
      const one = flood(send(`flood-${++asked}`)).then(({ status }) => {
        statuses.add(status)
        pending.delete(one)
      })
      pending.add(one)
    }
  }, 20)
  releaseLater(() => clearInterval(timer))
  await eventually(() => (statuses.counts.get(429) ?? 0) > 100)
  const answers: number[] = []
  for (let visitor = 1; visitor <= 11; visitor++) {
    const call = callerFrom(api.url, `127.0.3.${visitor}`, pageKey)
    const sent = send(`visitor-${visitor}`)
    // As a page does: a 503 of a busy machine counted nothing.
    const { status } = await eventually(async () => {
      const answer = await call(sent)
      return answer.status !== 503 && answer
    })
    answers.push(status)
  }
  clearInterval(timer)
  await Promise.all(pending)
  expect(answers).toEqual(Array(11).fill(202))
  // The flood reached its limit. It got refusals of that limit, and mostly not a 503.
  expect(statuses.counts.get(202)).toBe(60)
  expect(statuses.counts.get(503) ?? 0).toBeLessThan(statuses.counts.get(429) ?? 0)
  expect(api.output()).not.toContain('request failed')
}, 120_000)
