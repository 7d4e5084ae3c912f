/**
 * The proxies of deploy/ before a real API: the address that a visitor has there, and connections that survive a
 * restart.
 */
import { once } from 'node:events'
import { Agent, request } from 'node:https'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { testDatabase } from '../tools/database.ts'
import { posternEnv, processEnv } from '../tools/postern.ts'
import { startProcess } from '../tools/processes.ts'
import { openCaddy, openHaproxy, openNginx, twoPlaces } from '../tools/proxies.ts'
import { testRedis } from '../tools/redis.ts'
import { releaseLater } from '../tools/release.ts'
import { startTcpProxy } from '../tools/tcp-proxy.ts'
import { eventually } from '../tools/wait.ts'

/** Each address may send once. */
const policies = {
  captcha: [{ name: 'ip', key: '{ip}', sliding: '1 per 1h' }],
  notice: [],
  check: [],
}

const service = `VA${'0'.repeat(32)}`
const compat = { twilioVerify: { services: { [service]: { app: 'default', scene: 'signup' } } } }

const proxies = [
  ['nginx', openNginx],
  ['HAProxy', openHaproxy],
  ['Caddy', openCaddy],
] as const

test.each(proxies)(
  '%s as in deploy/: each visitor has an address that headers cannot change, and keeps the connection over a restart; https stays https',
  async (_, open) => {
    const places = await twoPlaces()
    const proxy = await open(places)
    const servers = { redis: await testRedis(), database: await testDatabase() }
    const env = posternEnv({ ...servers, policyFile: { policies, compat }, env: proxy.env })
    const startAt = (place: 0 | 1) => startProcess('api', { env: { ...env, ...places[place] } })
    const [first, second] = await Promise.all([startAt(0), startAt(1)])
    await eventually(proxy.isWhole)

    const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false })
    releaseLater(() => agent.destroy())
    let numbers = 0
    const nextNumber = () => `+861380013${8_010 + ++numbers}`
    /** A request of a visitor who connects from this address of the loopback network. */
    const post = async (
      path: string,
      localAddress: string,
      headers: Record<string, string>,
      body: string,
    ) => {
      const options = { agent, localAddress, headers, method: 'POST' }
      const outgoing = request(`${proxy.addresses[0]}${path}`, options)
      outgoing.end(body)
      const [response] = await once(outgoing, 'response')
      const answer = await text(response)
      return { status: response.statusCode, isKept: outgoing.reusedSocket, answer }
    }
    const sendFrom = async (localAddress: string, forged: Record<string, string> = {}) => {
      const authorization = `Bearer ${env.BOOTSTRAP_SECRET_KEY}`
      const headers = { ...forged, authorization, 'content-type': 'application/json' }
      const body = JSON.stringify({ channel: 'sms', to: nextNumber() })
      const { status, isKept } = await post('/v1/captchas', localAddress, headers, body)
      return { status, isKept }
    }

    expect(await sendFrom('127.0.0.2')).toMatchObject({ status: 202 })
    for (const forged of ['198.51.100.7', '198.51.100.7, 198.51.100.8', '127.0.0.1']) {
      const headers = { 'x-forwarded-for': forged, 'x-real-ip': forged, forwarded: `for=${forged}` }
      expect(await sendFrom('127.0.0.2', headers), forged).toMatchObject({ status: 429 })
    }

    expect(await sendFrom('127.0.0.3')).toEqual({ status: 202, isKept: false })
    await second.terminate()
    expect(await sendFrom('127.0.0.3')).toEqual({ status: 429, isKept: true })
    const third = await startAt(1)
    await eventually(proxy.isWhole)
    await first.terminate()
    expect(await sendFrom('127.0.0.3')).toEqual({ status: 429, isKept: true })
    expect(await sendFrom('127.0.0.4')).toMatchObject({ status: 202 })

    // The façade of Twilio writes the address of the request into its answer.
    const account = `AC${'0'.repeat(32)}:${env.BOOTSTRAP_SECRET_KEY}`
    const headers = {
      authorization: `Basic ${Buffer.from(account).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    }
    const form = String(new URLSearchParams({ To: nextNumber(), Channel: 'sms' }))
    const verifications = `/v2/Services/${service}/Verifications`
    const { answer } = await post(verifications, '127.0.0.5', headers, form)
    expect(JSON.parse(answer).url).toMatch(/^https:/)
    expect(proxy.log()).toBe('')
    await third.terminate()
  },
  120_000,
)

const token = 'the-token-of-acme-in-the-query'
const acme = {
  kind: 'vonage',
  apiKey: 'key',
  apiSecret: 'secret',
  from: 'ACME',
  receiptToken: token,
}

test.each(proxies)(
  '%s as in deploy/: while PostgreSQL is cut off codes are checked (I38); receipts of 1 MB arrive, and no log has their token',
  async (_, open) => {
    const places = await twoPlaces()
    const proxy = await open(places)
    const database = await testDatabase()
    const network = await startTcpProxy(Number(new URL(database.url).port))
    const env = processEnv({
      redis: await testRedis(),
      database: { ...database, url: network.through(database.url) },
      policyFile: {
        code: { length: 4, ttl: '5m', triesPerCode: 3, own: true },
        policies: { captcha: [], notice: [], check: [] },
        providers: { phone: { kind: 'sandbox' }, acme },
        routes: { sms: [{ use: ['phone'] }] },
      },
      env: proxy.env,
    })
    const all = await Promise.all(
      places.map((place) => startProcess('api', { env: { ...env, ...place } })),
    )
    await eventually(proxy.isWhole)

    const agent = new Agent({ keepAlive: false, rejectUnauthorized: false })
    const call = async (path: string, body: object | string, method = 'POST') => {
      const authorization = `Bearer ${env.BOOTSTRAP_SECRET_KEY}`
      const headers = { authorization, 'content-type': 'application/json' }
      const outgoing = request(`${proxy.addresses[0]}${path}`, {
        agent,
        headers,
        method,
        signal: AbortSignal.timeout(15_000),
      })
      outgoing.end(typeof body === 'string' ? body : JSON.stringify(body))
      const [response] = await once(outgoing, 'response')
      return { status: response.statusCode as number, answer: await text(response) }
    }

    const receipts = JSON.stringify({ messageId: 'unknown', status: 'delivered' }).padEnd(1_048_576)
    const receiptsPath = `/v1/receipts/acme?token=${token}`
    expect((await call(receiptsPath, receipts)).status).toBeLessThan(300)
    expect((await call('/v1/captchas', ' '.repeat(70_000))).status).toBeGreaterThanOrEqual(400)

    const numbers = Array.from({ length: 8 }, (_, at) => `+861380013802${at}`)
    for (const to of numbers) {
      expect((await call('/v1/captchas', { channel: 'sms', to, code: '1357' })).status).toBe(202)
    }
    network.cut()
    const notReady = async ({ adminUrl }: { adminUrl: string }) =>
      (await fetch(`${adminUrl}/readyz`, { headers: { connection: 'close' } })).status === 503
    await eventually(async () => (await Promise.all(all.map(notReady))).every(Boolean))
    // For so long that each proxy would notice a process that fails its checks.
    for (const to of numbers) {
      await sleep(800)
      const checked = await call('/v1/captchas/check', { channel: 'sms', to, code: '1357' })
      expect(checked, checked.answer).toMatchObject({ status: 200 })
    }

    await Promise.all(all.map((process) => process.kill()))
    expect((await call(receiptsPath, '{}')).status).toBeGreaterThanOrEqual(502)
    await eventually(() => proxy.accessLog().includes('/v1/receipts/acme'))
    expect(proxy.accessLog()).not.toContain(token)
  },
  120_000,
)
