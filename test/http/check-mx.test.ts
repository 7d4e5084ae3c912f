/** `recipients.mail.checkMx` through the whole product: a domain without mail is refused, and costs nothing. */
import { expect, test } from 'vitest'
import { startDns, useDns } from '../tools/dns.ts'
import { startPostern } from '../tools/postern.ts'

const dns = await startDns({
  'good.test': { mx: [[10, 'mx.good.test']] },
  'null.test': { mx: [[0, '']] },
  'xn--e1afmkfd.test': { mx: [[0, '']] },
  'silent.test': 'silence',
})
useDns(dns)
const postern = await startPostern({
  roles: { api: true, worker: false },
  policyFile: {
    recipients: { mail: { checkMx: true } },
    testing: { recipients: [{ to: 'reviewer@null.test', code: '1234' }] },
    policies: {
      captcha: [{ name: 'all', key: '{app}', sliding: '3 per 1h' }],
      notice: [],
      check: [],
    },
  },
})
const send = (to: string, more = {}) =>
  postern.post('/v1/captchas', { channel: 'email', to, ...more })
const refused = { status: 422, body: { code: 'invalid_recipient' } }

test('a null MX, no such domain: 422 for captchas and notices, no quota and no row; in capitals and own letters too', async () => {
  for (const to of ['ada@null.test', 'ada@NULL.test', 'ada@ПРИМЕР.test', 'ada@gone.test']) {
    expect(await send(to)).toMatchObject(refused)
  }
  const notice = { channel: 'email', to: 'ada@null.test', template: 'welcome' }
  const params = { name: 'Ada' }
  expect(await postern.post('/v1/notices', { ...notice, params })).toMatchObject(refused)
  const { rows } = await postern.database.pool.query('SELECT count(*)::int AS count FROM notice')
  expect(rows[0].count).toBe(0)
  // None of the three uses of the rule was taken: these three are sent, with or without an answer of DNS.
  expect((await send('ada@good.test')).status).toBe(202)
  const startedAt = performance.now()
  expect((await send('ada@silent.test')).status).toBe(202)
  expect(performance.now() - startedAt).toBeLessThan(10_000)
  expect((await send('eve@good.test')).status).toBe(202)
  expect((await send('bob@good.test')).status).toBe(429)
})

test('a send that the limits refuse looks nothing up', async () => {
  const body = { channel: 'email', to: 'ada@refused.test' }
  expect(await postern.post('/v1/captchas', body)).toMatchObject({ status: 429 })
  expect(dns.queries.filter((query) => query.includes('refused.test'))).toEqual([])
})

test('a test recipient is reached with any domain', async () => {
  expect((await send('reviewer@null.test')).status).toBe(202)
})

test('nothing is looked up for strangers, for bodies that are wrong, and for checks', async () => {
  const body = { channel: 'email', to: 'ada@other.test' }
  expect((await postern.post('/v1/captchas', body, { key: null })).status).toBe(401)
  expect((await postern.post('/v1/captchas', { ...body, template: 'nothing' })).status).toBe(400)
  expect((await postern.post('/v1/captchas/check', { ...body, code: '0000' })).status).toBe(410)
  // Meanwhile the silent domain of another test is looked up a second time.
  expect(dns.queries.filter((query) => query.includes('other.test'))).toEqual([])
})
