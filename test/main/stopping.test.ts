/** A Postern that stops, mounted in a host and as a process: its requests under way. */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import express from 'express'
import { expect, test } from 'vitest'
import { createPostern } from '../../src/main/create-postern.ts'
import { testDatabase } from '../tools/database.ts'
import { admin } from '../tools/fleet.ts'
import { listen } from '../tools/listen.ts'
import { clientOf, noLimits, processEnv } from '../tools/postern.ts'
import { startProcess } from '../tools/processes.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const [redis, database] = [await testRedis(), await testDatabase()]
const once60s = [{ name: 'recipient', key: '{to}', sliding: '1 per 60s' }]
const env = processEnv({
  redis,
  database,
  policyFile: { policies: { ...noLimits, captcha: once60s } },
})
const key = env.BOOTSTRAP_SECRET_KEY as string

async function mount() {
  const postern = await createPostern({
    environment: env,
    policy: env.POSTERN_CONFIG as string,
    keyPrefix: redis.prefix,
  })
  releaseLater(() => postern.close())
  const url = await listen(express().use('/otp', postern.router))
  const { post } = clientOf(`${url}/otp`, key)
  const send = (to: string) => post('/v1/captchas', { channel: 'sms', to })
  // It resolves before its connections are made.
  await eventually(async () => (await send(freshPhone())).status === 202)
  return { postern, send }
}

let phone = 13_800_000_000 + randomInt(90_000_000)
const freshPhone = () => `+86${phone++}`

test('close() under 320 sends: those under way are carried out, those that come later are 503 and took nothing (I34)', async () => {
  const { postern, send } = await mount()
  const phones = Array.from({ length: 320 }, freshPhone)
  const sends = phones.map(send)
  await Promise.race(sends)
  const closed = postern.close()
  const late = await send(freshPhone())
  expect(late).toMatchObject({ status: 503, body: { code: 'unavailable' } })
  expect(late.headers.get('connection')).toBe('close')
  const answers = await Promise.all(sends)
  await closed

  const accepted = answers.filter(({ status }) => status === 202)
  const refused = phones.filter((_, at) => answers[at]?.status === 503)
  expect(accepted.length + refused.length).toBe(320)
  const ids = accepted.map(({ body }) => body.id)
  const rows = await database.pool.query('SELECT id FROM notice WHERE id = ANY($1)', [ids])
  expect(rows.rowCount).toBe(ids.length)
  // If a refused send had kept its use, its recipient would now be refused for a minute. A busy server answers 503, and
  // gives the use of that send back a moment later.
  const next = await mount()
  const isAccepted = async (to: string) => (await next.send(to)).status === 202
  await Promise.all(refused.map((to) => eventually(() => isAccepted(to), { everyMs: 200 })))
})

test('close() while PostgreSQL does not answer: the send under way is 503, and its quota is back when it has closed', async () => {
  const { postern, send } = await mount()
  const to = freshPhone()
  const lock = await database.pool.connect()
  await lock.query('BEGIN; LOCK TABLE notice')
  const sending = send(to)
  const waits =
    "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
  await eventually(async () => (await database.pool.query(waits)).rowCount === 1)
  await postern.close()
  expect((await sending).status).toBe(503)
  await lock.query('ROLLBACK')
  lock.release()
  expect((await (await mount()).send(to)).status).toBe(202)
})

test('a second close() returns the same promise, and startWorker() after it throws', async () => {
  const { postern } = await mount()
  const closing = postern.close()
  expect(postern.close()).toBe(closing)
  expect(() => postern.startWorker()).toThrow(
    'startWorker: this Postern is closed; call createPostern again',
  )
  await closing
  expect(postern.close()).toBe(closing)
})

test('SIGTERM: /readyz is 503 while DRAIN_SECONDS last, requests are answered with Connection: close, then exit 0', async () => {
  const api = await startProcess('api', { env: { ...env, DRAIN_SECONDS: '2' } })
  const agent = closeLater(new Agent({ keepAlive: true }), 'destroy')
  const ask = async () => {
    const asked = request(`${api.url}/openapi.json`, { agent }).end()
    const [response] = await once(asked, 'response')
    response.resume()
    await once(response, 'end')
    return response.headers.connection
  }
  expect(await ask()).toBe('keep-alive')
  api.signal('SIGTERM')
  await eventually(async () => {
    const response = await admin(api, '/readyz')
    expect(await response.json()).toEqual({ status: 'not ready', reasons: ['stopping'] })
    expect(response.status).toBe(503)
  })
  expect(await ask()).toBe('close')
  // On a new connection.
  expect(await ask()).toBe('close')
  expect(await api.exited).toBe(0)
})
