import { expect, test } from 'vitest'
import { noLimits, startPostern } from '../support/postern.ts'
import { templatesFolder } from '../support/templates-folder.ts'

const postern = await startPostern({
  policyFile: {
    policies: { ...noLimits, captcha: [{ name: 'recipient', key: '{to}', sliding: '1 per 1h' }] },
    templates: templatesFolder(
      { 'order/sms.en.txt': '{{name}}: {{order}}' },
      { withShipped: true },
    ),
  },
})
const welcome = {
  channel: 'sms',
  to: '+8613800138000',
  template: 'order',
  params: { name: 'Ada', order: 7 },
}
const notice = (key: string, body: unknown = welcome) =>
  postern.post('/v1/notices', body, { headers: { 'idempotency-key': key } })
const noticeCount = async () => {
  const { rows } = await postern.database.pool.query('SELECT count(*)::int AS count FROM notice')
  return rows[0].count
}

test('the same key 50 times at once: one message; the others are told to wait or get the same answer', async () => {
  const before = await noticeCount()
  const replies = await Promise.all(Array.from({ length: 50 }, () => notice('at-once')))
  const accepted = replies.filter(({ status }) => status === 202)
  const waiting = replies.filter(({ status }) => status === 409)
  expect(accepted.length).toBeGreaterThan(0)
  expect(accepted.length + waiting.length).toBe(50)
  expect(new Set(accepted.map(({ body }) => JSON.stringify(body))).size).toBe(1)
  for (const { body } of waiting) expect(body.code).toBe('idempotency_in_progress')
  expect(await noticeCount()).toBe(before + 1)
})

test('a repeat gets the identical answer, Location included, also with its fields in another order', async () => {
  const first = await notice('repeat')
  const before = await noticeCount()
  const { channel, to, template } = welcome
  const reordered = { params: { order: 7, name: 'Ada' }, template, to, channel }
  for (const repeat of [await notice('repeat'), await notice('repeat', reordered)]) {
    expect(repeat.status).toBe(202)
    expect(JSON.stringify(repeat.body)).toBe(JSON.stringify(first.body))
    expect(repeat.headers.get('location')).toBe(first.headers.get('location'))
  }
  expect(await noticeCount()).toBe(before)
})

test('the key with another body or on another route: 422 idempotency_key_reused', async () => {
  await notice('reused')
  const before = await noticeCount()
  const other = await notice('reused', { ...welcome, params: { name: 'Eve', order: 7 } })
  expect(other).toMatchObject({ status: 422, body: { code: 'idempotency_key_reused' } })
  const headers = { 'idempotency-key': 'reused' }
  const captcha = await postern.post(
    '/v1/captchas',
    { channel: 'sms', to: welcome.to },
    { headers },
  )
  expect(captcha).toMatchObject({ status: 422, body: { code: 'idempotency_key_reused' } })
  expect(await noticeCount()).toBe(before)
})

test('a refused request frees its key: bad request, bad recipient, limited', async () => {
  expect((await notice('freed', { ...welcome, params: {} })).status).toBe(400)
  expect((await notice('freed', { ...welcome, to: '+861' })).status).toBe(422)
  expect((await notice('freed', { ...welcome, params: { name: 'Third', order: 7 } })).status).toBe(
    202,
  )

  const headers = { 'idempotency-key': 'limited' }
  const captcha = (to: string) => postern.post('/v1/captchas', { channel: 'sms', to }, { headers })
  await postern.post('/v1/captchas', { channel: 'sms', to: '+8613900139000' })
  expect((await captcha('+8613900139000')).status).toBe(429)
  expect((await captcha('+8615800158000')).status).toBe(202)
})

test('a captcha repeated with its key: one code, and it passes', async () => {
  const headers = { 'idempotency-key': 'captcha' }
  const body = { channel: 'sms', to: '+8615900159000' }
  const first = await postern.post('/v1/captchas', body, { headers })
  const repeat = await postern.post('/v1/captchas', body, { headers })
  expect([first.status, repeat.status]).toEqual([202, 202])
  expect(repeat.body).toEqual(first.body)
  const code = await postern.codeFor(first.body.id)
  expect((await postern.post('/v1/captchas/check', { ...body, code })).status).toBe(200)
  expect(await postern.messages(body.to)).toHaveLength(1)
})

test.each([
  ['empty', ''],
  ['over-long', 'x'.repeat(256)],
  ['with a space', 'a b'],
  ['not ASCII', 'caf\u00e9'],
])('a key that is %s: 400', async (_, key) => {
  const reply = await notice(key)
  expect(reply).toMatchObject({ status: 400, body: { errors: [{ path: 'Idempotency-Key' }] } })
})

/** A request that committed its notice and died before it could keep its answer, `ms` ago. */
async function loseAnswer(ms: number): Promise<void> {
  await postern.database.pool.query(
    `UPDATE idempotency_key SET answer = NULL, created_at = created_at - $1 * interval '1 ms'`,
    [ms],
  )
}

test('a captcha whose answer was lost after its commit: the repeat names the same notice, and the code that was sent passes', async () => {
  const headers = { 'idempotency-key': 'lost-answer' }
  const body = { channel: 'sms', to: '+8618600186000' }
  const first = await postern.post('/v1/captchas', body, { headers })
  const code = await postern.codeFor(first.body.id)
  await loseAnswer(31_000)
  const repeat = await postern.post('/v1/captchas', body, { headers })
  expect(repeat.status).toBe(202)
  expect(repeat.body.id).toBe(first.body.id)
  expect((await postern.post('/v1/captchas/check', { ...body, code })).status).toBe(200)
})

test('PostgreSQL fails between commit and answer: what was sent is never answered with 503', async () => {
  // The write of the answer alone fails; everything before it has been committed.
  await postern.database.pool.query(`
    CREATE FUNCTION refuse_answer() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'cut' USING ERRCODE = '57P01'; END $$;
    CREATE TRIGGER refuse_answer BEFORE UPDATE OF answer ON idempotency_key
      FOR EACH ROW EXECUTE FUNCTION refuse_answer()`)
  try {
    const before = await noticeCount()
    expect((await notice('unkept')).status).toBe(202)
    expect(await noticeCount()).toBe(before + 1)
  } finally {
    await postern.database.pool.query('DROP TRIGGER refuse_answer ON idempotency_key')
  }
})
