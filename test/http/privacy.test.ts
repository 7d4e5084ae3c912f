import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { testDatabase } from '../tools/database.ts'
import { listen } from '../tools/listen.ts'
import { clientOf, noLimits, processEnv, startPostern } from '../tools/postern.ts'
import { startProcess } from '../tools/processes.ts'
import { testRedis } from '../tools/redis.ts'
import { eventually } from '../tools/wait.ts'
import { rawHttp } from './raw-http.ts'

/** Values that no reader may find, in every readable form. */
const phone = '+8613912345678'
const otherPhone = '+8613787654321'
const address = 'canary.person@example.com'
const apiKey = 'psk_canary_7d1f0c3b9a5e2846'
const idempotencyKey = 'canary-idempotency-5f2c'
const ownCode = 'Zq7Canary'
const paramValue = 'CanaryLovelace'
const callerIp = '198.51.100.213'

/** Asserts that `text` has none of these values. */
function expectNoCanary(place: string, text: string, canaries: readonly string[]): void {
  const found = canaries.filter((canary) => text.toLowerCase().includes(canary.toLowerCase()))
  expect({ place, found }).toEqual({ place, found: [] })
}

/** Every key of a Redis database with its full value, of any type. */
async function everythingIn(
  redis: Awaited<ReturnType<typeof testRedis>>,
): Promise<Map<string, string>> {
  const { client } = redis
  const all = new Map<string, string>()
  for (const key of await client.keys('*')) {
    const readers: Record<string, () => Promise<unknown>> = {
      string: () => client.get(key),
      hash: () => client.hgetall(key),
      list: () => client.lrange(key, 0, -1),
      set: () => client.smembers(key),
      zset: () => client.zrange(key, '0', '-1', 'WITHSCORES'),
      stream: () => client.xrange(key, '-', '+'),
    }
    const type = await client.type(key)
    all.set(key, JSON.stringify(await readers[type]?.()))
  }
  return all
}

test('phone, address, code, key and variables appear in no log, metric, answer, job, Redis value or row beyond notice.recipient (I14)', async () => {
  const redis = await testRedis()
  const database = await testDatabase()
  // A provider that breaks connections: its errors must not name a person either.
  const farEnd = createServer((socket) => socket.destroy())
  const { port } = new URL(await listen(farEnd))
  const env = processEnv({
    redis,
    database,
    env: { LOG_LEVEL: 'debug', BOOTSTRAP_SECRET_KEY: apiKey },
    policyFile: {
      code: { own: true },
      policies: {
        captcha: [
          { name: 'duplicate', key: '{app}:{dedupe}', fixed: '2 per 60s' },
          { name: 'recipient', key: '{app}:{channel}:{to}', sliding: ['1 per 60s', '5 per 1h'] },
          { name: 'ip', key: '{app}:{ip}', sliding: '60 per 10m' },
        ],
        notice: [{ name: 'duplicate', key: '{app}:{dedupe}', fixed: '2 per 60s' }],
        check: [
          {
            name: 'guesses',
            key: '{app}:{channel}:{to}:{ip}',
            lockout: { limit: 2, window: '5m', lock: '15m' },
          },
        ],
      },
      providers: {
        sandbox: { kind: 'sandbox' },
        mail: { kind: 'smtp', url: `smtp://127.0.0.1:${port}`, from: 'Acme <no-reply@acme.test>' },
      },
      routes: {
        sms: [{ use: ['sandbox'] }],
        email: [{ match: { template: 'welcome' }, use: ['mail'] }, { use: ['sandbox'] }],
      },
    },
  })
  const [api, worker] = await Promise.all([
    startProcess('api', { env }),
    startProcess('worker', { env }),
  ])
  const { post, get, codeFor } = clientOf(api.url, apiKey)
  const answers: string[] = []
  const ask = async (path: string, body: unknown, headers: Record<string, string> = {}) => {
    const reply = await post(path, body, { headers })
    // A number of four digits may equal a code by chance.
    const said = [...reply.headers].filter(([name]) => name !== 'content-length')
    answers.push(JSON.stringify([reply.body, said]))
    return reply
  }

  // Every call with these values, right and wrong.
  const codes: string[] = []
  const params = { name: paramValue }
  const keyed = { 'idempotency-key': idempotencyKey }
  for (const [channel, to] of [
    ['sms', phone],
    ['email', address],
  ] as const) {
    const sent = await ask('/v1/captchas', { channel, to }, keyed)
    expect(sent.status).toBe(channel === 'sms' ? 202 : 422)
    const { body } = channel === 'sms' ? sent : await ask('/v1/captchas', { channel, to })
    const code = await codeFor(body.id)
    codes.push(code)
    const check = { channel, to }
    await ask('/v1/captchas', { channel, to, params })
    await ask('/v1/captchas/check', {
      ...check,
      code: String((Number(code) + 1) % 10_000).padStart(4, '0'),
    })
    await ask('/v1/captchas/check', { ...check, code: Number(code) })
    if (channel === 'sms') await ask('/v1/captchas/check', { ...check, code })
    await ask('/v1/notices', { channel, to, template: 'welcome', params })
    await ask('/v1/notices', { channel, to, template: paramValue, params })
    await ask('/v1/notices', { channel, to: `${to}\r\nBcc: x`, template: 'welcome', params })
    await ask('/v1/notices', { channel, to: `${to},${to}`, template: 'welcome', params })
    await ask('/v1/notices', {
      channel,
      to,
      template: 'welcome',
      params: { ...params, x: 'x'.repeat(2_000) },
    })
    await ask('/v1/notices/search', { channel, to })
    for (let tries = 0; tries < 4; tries++) {
      await ask('/v1/captchas/check', { channel, to, code: '0000', ip: callerIp })
    }
    await ask('/v1/recipients/lookup', { channel, to, ip: callerIp })
    await ask('/v1/recipients/reset', { channel, to, what: ['code'], reason: `called from ${to}` })
    await ask('/v1/recipients/reset', { channel, to, what: ['code'], reason: 'ticket 1' })
    await ask('/v1/notices/search', { channel, to, cursor: to })
    await ask('/v1/captchas', `{"channel":"${channel}","to":"${to}"`)
    await ask(
      `/v1/captchas/${encodeURIComponent(to)}?to=${encodeURIComponent(to)}&key=${apiKey}`,
      {},
    )
    answers.push(JSON.stringify((await get(`/v1/notices/${encodeURIComponent(to)}`)).body))
  }
  await rawHttp(
    api.url,
    `GET /${phone}\n{"level":60,"injected":true} HTTP/1.1\r\nHost: ${address}\r\nUser-Agent: ${phone}\r\n\r\n`,
  )
  const forged = `x%0d%0a{"level":60,"injected":true}`
  await get(`/v1/notices/${forged}`, { headers: { 'x-request-id': forged, 'user-agent': forged } })
  await get('/v1/notices/x', { key: `${apiKey}-wrong` })

  // The codes above are used or taken back. This one stays; its sender made it.
  const own = { 'idempotency-key': `${idempotencyKey}-2` }
  const asked = { channel: 'sms', to: otherPhone, code: ownCode }
  expect((await ask('/v1/captchas', asked, own)).status).toBe(202)
  await ask('/v1/captchas', { ...asked, code: `${ownCode}-` })
  await ask('/v1/captchas/check', { ...asked, code: ownCode.toLowerCase() })

  // Waits until every captcha is sent, the mail that is cut off has been tried, and the records for support are
  // written: refusals, one of them a lock with its address, and checks.
  await eventually(async () => {
    const { rows } = await database.pool.query('SELECT rule, outcome, sealed_values FROM decision')
    expect(JSON.stringify(rows)).toMatch(/guesses.*mismatch|mismatch.*guesses/s)
    expect(rows.some(({ sealed_values: sealed }) => sealed !== null)).toBe(true)
  })
  const metrics = await eventually(async () => {
    const { rows } = await database.pool.query('SELECT state, kind, attempts, channel FROM notice')
    const isAtRest = rows.every(({ state, attempts }) => state === 'sent' || attempts.length > 0)
    const texts = await Promise.all(
      [api, worker].map(async ({ adminUrl }) => (await fetch(`${adminUrl}/metrics`)).text()),
    )
    return isAtRest && texts.join('\n')
  })
  // While the queue still has jobs that wait for their next try.
  const inRedis = await everythingIn(redis)
  const { rows: notices } = await database.pool.query('SELECT * FROM notice')
  const { rows: others } = await database.pool.query('SELECT * FROM idempotency_key')
  const { rows: keys } = await database.pool.query('SELECT * FROM api_key')
  const { rows: decisions } = await database.pool.query('SELECT * FROM decision')
  expect(await worker.terminate()).toBe(0)
  expect(await api.terminate()).toBe(0)

  const [localNumber] = [phone.slice(3)]
  const canaries = [
    localNumber,
    otherPhone.slice(3),
    'canary.person',
    'canary_7d1f',
    idempotencyKey,
    ownCode,
    paramValue,
    callerIp,
  ]
  const output = api.output() + worker.output()
  expect(output).toContain('"msg":"request"')
  expect(output).toContain('"msg":"tried"')
  expectNoCanary('log', output, canaries)
  // Any number may contain four digits. A code stands alone, as a value or in a text.
  const standsAlone = codes.map((code) => new RegExp(`(?<![\\w.:-])${code}(?![\\w.:-])`))
  for (const line of output.split('\n').filter(Boolean)) {
    const entry = JSON.parse(line)
    expect(entry).not.toHaveProperty('injected')
    const { durationMs: _d, pid: _p, ...said } = entry
    for (const code of standsAlone) expect(JSON.stringify(said)).not.toMatch(code)
  }
  expectNoCanary('metrics', metrics, canaries)
  expectNoCanary('answers', answers.join('\n'), canaries)
  for (const answer of answers) {
    for (const code of standsAlone) expect(answer).not.toMatch(code)
  }

  expect([...inRedis.keys()].some((key) => key.includes('send-email'))).toBe(true)
  const codesInRedis = [...inRedis].filter(([key]) => key.includes(':code:'))
  // For operations of support, only the fact is stored.
  expect(codesInRedis.filter(([, value]) => /digest\\?":\\?"[\w-]/.test(value))).toHaveLength(1)
  for (const [key, value] of inRedis) {
    // Only the sandbox keeps messages, because that is its purpose.
    if (key.endsWith('sandbox:outbox')) continue
    expectNoCanary(`redis ${key}`, `${key} ${value}`, canaries)
    if (key.includes(':code:'))
      for (const code of codes) expect(value).not.toMatch(new RegExp(`\\b${code}\\b`))
  }

  expect(notices.map(({ recipient }) => recipient)).toEqual(
    expect.arrayContaining([phone, address]),
  )
  for (const { recipient: _r, ...row } of notices) {
    const bytes = Object.values(row).filter((value) => Buffer.isBuffer(value))
    expectNoCanary(
      'notice',
      JSON.stringify(row) + Buffer.concat(bytes).toString('latin1'),
      canaries,
    )
    expect(row.state === 'sent' ? row.sealed_params : null).toBe(null)
  }
  const { rows: operations } = await database.pool.query('SELECT * FROM operation')
  expect(operations).toHaveLength(2)
  for (const { recipient_hash, ...row } of operations) {
    expectNoCanary('operation', JSON.stringify(row) + recipient_hash.toString('latin1'), canaries)
  }
  expect(decisions.length).toBeGreaterThan(0)
  for (const { recipient_hash: hash, ...row } of decisions) {
    expectNoCanary('decision', JSON.stringify(row) + hash?.toString('latin1'), canaries)
  }
  expectNoCanary('idempotency_key', JSON.stringify(others), canaries)
  for (const { key_hash, request_hash } of others) {
    expectNoCanary('idempotency hashes', `${key_hash}${request_hash}`, canaries)
  }
  expectNoCanary(
    'api_key',
    JSON.stringify(keys) + keys.map(({ hash }) => hash.toString('latin1')),
    canaries,
  )
})

test('many numbers, addresses, callers and paths add no metric series (I16)', async () => {
  const postern = await startPostern({
    policyFile: { policies: noLimits },
    env: { TRUST_PROXY_HOPS: '1' },
  })
  const seriesNames = async () => {
    const text = await (await fetch(`${postern.adminUrl}/metrics`)).text()
    const lines = text.split('\n').filter((line) => line && !line.startsWith('#'))
    // Metrics of the runtime (heap spaces, handles) come and go.
    return lines
      .map((line) => line.slice(0, line.lastIndexOf(' ')))
      .filter((name) => !name.startsWith('postern_nodejs') && !name.startsWith('postern_process'))
      .sort()
  }
  const visit = async (index: number) => {
    const headers = {
      'x-forwarded-for': `203.0.${index % 256}.${index >> 8}`,
      'user-agent': `agent ${index}`,
    }
    const digits = String(index).padStart(4, '0')
    await Promise.all([
      postern.post(
        '/v1/captchas',
        { channel: 'sms', to: `+861380013${digits}`, scene: `s${index}` },
        { headers },
      ),
      postern.post(
        '/v1/captchas',
        { channel: 'email', to: `a${index}@d${index}.example` },
        { headers },
      ),
      postern.post(
        '/v1/captchas/check',
        { channel: 'sms', to: `+861380013${digits}`, code: digits },
        { headers },
      ),
      postern.post(
        '/v1/notices',
        { channel: 'sms', to: '+8613800138000', template: `t${index}` },
        { headers },
      ),
      postern.get(`/path/${index}`, { headers }),
      postern.get(`/v1/notices/${index}`, { headers, key: `psk_${index}_of_nobody` }),
      postern.get(`/v1/captchas`, {
        headers,
        method: ['PUT', 'PATCH', 'DELETE'][index % 3] as string,
      }),
      postern.get('/', { headers, method: `X${index}` }).catch(() => {}),
    ])
  }
  for (const index of [0, 1, 2]) await visit(index)
  await postern.messages()
  // The first visits create all metrics. A metric that was scraped once stays from then on.
  await eventually(async () => {
    const text = await (await fetch(`${postern.adminUrl}/metrics`)).text()
    const counts = [...text.matchAll(/^postern_notices_finished_total\{.*\} (\d+)$/gm)]
    return counts.reduce((sum, [, count]) => sum + Number(count), 0) === 6
  })
  await seriesNames()
  const before = await seriesNames()
  for (let start = 10; start < 110; start += 20) {
    await Promise.all(Array.from({ length: 20 }, (_, offset) => visit(start + offset)))
  }
  await eventually(async () => {
    const { rows } = await postern.database.pool.query(
      `SELECT count(*)::int AS sent FROM notice WHERE state = 'sent'`,
    )
    return rows[0].sent === 206
  })
  const after = await seriesNames()
  expect(after.filter((name) => !before.includes(name))).toEqual([])
})
