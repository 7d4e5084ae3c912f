import { expect, test } from 'vitest'
import { noLimits, startPostern } from '../tools/postern.ts'
import { eventually } from '../tools/wait.ts'

const postern = await startPostern({
  policyFile: {
    policies: { ...noLimits, captcha: [{ name: 'recipient', key: '{to}', sliding: '1 per 1h' }] },
  },
})
const admin = async (path: string, method = 'GET') => {
  const response = await fetch(`${postern.adminUrl}${path}`, { method })
  return { status: response.status, headers: response.headers, text: await response.text() }
}
/** One sample of /metrics; 0 if it is missing. */
const sample = (text: string, name: string, labels: Record<string, string>) => {
  const line = text
    .split('\n')
    .find(
      (each) =>
        each.startsWith(`${name}{`) &&
        Object.entries(labels).every(([label, value]) => each.includes(`${label}="${value}"`)),
    )
  return Number(line?.split(' ').at(-1) ?? 0)
}

test('/livez and /readyz: 200 while everything is there', async () => {
  expect(await admin('/livez')).toMatchObject({ status: 200 })
  const ready = await admin('/readyz')
  expect(ready.status).toBe(200)
  // The suite's Redis stores nothing on disk, for speed.
  expect(JSON.parse(ready.text)).toEqual({
    status: 'ready',
    warnings: [expect.stringContaining('appendonly no')],
  })
})

test('/readyz: 503 with the reason while Redis would evict, and 200 again after (F9)', async () => {
  const config = (policy: string) => postern.redis.client.config('SET', 'maxmemory-policy', policy)
  await config('allkeys-lru')
  try {
    const { status, text } = await admin('/readyz')
    expect(status).toBe(503)
    expect(JSON.parse(text).reasons[0]).toContain('maxmemory-policy allkeys-lru')
  } finally {
    await config('noeviction')
  }
  expect((await admin('/readyz')).status).toBe(200)
})

test('/readyz: 503 with one reason for all migrations that are not applied', async () => {
  const { pool } = postern.database
  await pool.query(`UPDATE _prisma_migrations SET migration_name = migration_name || '_old'`)
  try {
    const { status, text } = await admin('/readyz')
    expect(status).toBe(503)
    expect(JSON.parse(text).reasons).toEqual([
      expect.stringMatching(
        /^migrations not applied: \d+, the first is \d+_first; run npm run migrate$/,
      ),
    ])
  } finally {
    await pool.query(
      `UPDATE _prisma_migrations SET migration_name = replace(migration_name, '_old', '')`,
    )
  }
})

test('/metrics: counters equal what callers saw (I15)', async () => {
  const send = (to: string) => postern.post('/v1/captchas', { channel: 'sms', to })
  const { body } = await send('+8613800138000')
  for (let count = 0; count < 3; count += 1) await send('+8613800138000')
  const check = { channel: 'sms', to: '+8613800138000', code: await postern.codeFor(body.id) }
  await postern.post('/v1/captchas/check', check)
  await postern.post('/v1/captchas/check', check)
  await postern.get('/nothing')

  const { text, headers } = await eventually(async () => {
    const metrics = await admin('/metrics')
    return (
      sample(metrics.text, 'postern_notices_finished_total', { state: 'sent' }) === 1 && metrics
    )
  })
  expect(headers.get('content-type')).toMatch(/^text\/plain/)
  expect(text.endsWith('\n')).toBe(true)
  const requests = (route: string, status: string) =>
    sample(text, 'postern_http_requests_total', { route, status })
  expect(requests('/v1/captchas', '202')).toBe(1)
  expect(requests('/v1/captchas', '429')).toBe(3)
  expect(requests('unknown', '404')).toBe(1)
  expect(sample(text, 'postern_accepted_total', { kind: 'captcha', channel: 'sms' })).toBe(1)
  expect(sample(text, 'postern_rejected_total', { policy: 'captcha', rule: 'recipient' })).toBe(3)
  expect(sample(text, 'postern_checks_total', { result: 'passed' })).toBe(1)
  expect(sample(text, 'postern_checks_total', { result: 'gone' })).toBe(1)
  expect(sample(text, 'postern_sends_total', { provider: 'sandbox', outcome: 'accepted' })).toBe(1)
})

test('other paths and methods: 404 and 405, and nothing of the API is served here', async () => {
  expect((await admin('/healthz')).status).toBe(404)
  expect((await admin('/v1/captchas', 'POST')).status).toBe(404)
  const wrong = await admin('/metrics', 'POST')
  expect(wrong.status).toBe(405)
  expect(wrong.headers.get('allow')).toBe('GET, HEAD')
  const head = await admin('/livez', 'HEAD')
  expect(head).toMatchObject({ status: 200, text: '' })
})
