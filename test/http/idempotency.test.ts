import type { Request, Response } from 'express'
import { describe, expect, test } from 'vitest'
import type { Log } from '../../src/base/log.ts'
import { Overloaded, Unavailable } from '../../src/base/unavailable.ts'
import { createRespond } from '../../src/http/respond.ts'
import { createUnderWay } from '../../src/http/under-way.ts'
import { notices, spansToMake } from '../../src/upkeep/partitions.ts'
import { testMetrics } from '../tools/metrics.ts'
import { noLimits, type Reply, startPostern } from '../tools/postern.ts'
import { publishableKey } from '../tools/publishable-key.ts'
import { startTcpProxy } from '../tools/tcp-proxy.ts'
import { templatesFolder } from '../tools/templates-folder.ts'
import { eventually } from '../tools/wait.ts'

const postern = await startPostern({
  policyFile: {
    policies: { ...noLimits, captcha: [{ name: 'recipient', key: '{to}', sliding: '1 per 1h' }] },
    templates: templatesFolder(
      { 'order/sms.en.txt': '{{name}}: {{order}}' },
      { withShipped: true },
    ),
  },
})
// A trigger that is made while the worker makes partitions may stay on one of them.
await eventually(async () => {
  const { rows } = await postern.database.pool.query(
    `SELECT inhrelid FROM pg_inherits WHERE inhparent = 'notice'::regclass`,
  )
  expect(rows.length).toBeGreaterThan(spansToMake(notices, Date.now()).length)
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

test('the same key 50 times at once: one message; the others must wait or get the same answer', async () => {
  let round = 0
  // With another key where a busy machine refused one of them.
  const { before, replies } = await eventually(async () => {
    const key = `at-once-${++round}`
    const before = await noticeCount()
    const replies = await Promise.all(Array.from({ length: 50 }, () => notice(key)))
    return replies.every(({ status }) => status !== 503) && { before, replies }
  })
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

test('the key with another body: 422 idempotency_key_reused', async () => {
  await notice('reused')
  const before = await noticeCount()
  const other = await notice('reused', { ...welcome, params: { name: 'Eve', order: 7 } })
  expect(other).toMatchObject({ status: 422, body: { code: 'idempotency_key_reused' } })
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

test('bad input is refused before its key is reserved: PostgreSQL is not asked', async () => {
  await postern.database.pool.query(`
    CREATE FUNCTION refuse_key() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'cut' USING ERRCODE = '57P01'; END $$;
    CREATE TRIGGER refuse_key BEFORE INSERT ON idempotency_key
      FOR EACH ROW EXECUTE FUNCTION refuse_key()`)
  try {
    expect((await notice('bad', { ...welcome, params: {} })).status).toBe(400)
    expect((await notice('bad', { ...welcome, to: '+861' })).status).toBe(422)
    expect((await notice('bad')).status).toBe(503)
  } finally {
    await postern.database.pool.query('DROP TRIGGER refuse_key ON idempotency_key')
  }
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

/** New rows are due tomorrow, so that no worker claims them meanwhile. */
const holdNotices = `
  CREATE OR REPLACE FUNCTION hold_notice() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN NEW.state = 'sending'; NEW.due_at = now() + interval '1 day'; RETURN NEW; END $$;
  CREATE TRIGGER hold_notice BEFORE INSERT ON notice FOR EACH ROW EXECUTE FUNCTION hold_notice()`

/** The write of a row waits until the test gives this lock back. */
const stopNotices = `
  CREATE OR REPLACE FUNCTION stop_notice() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END $$;
  CREATE TRIGGER stop_notice BEFORE INSERT ON notice FOR EACH ROW EXECUTE FUNCTION stop_notice()`

/** A request that committed its notice `ms` ago and died before it could store its answer. */
async function loseAnswer(ms: number): Promise<void> {
  await postern.database.pool.query(
    `UPDATE idempotency_key SET answer = NULL, created_at = created_at - $1 * interval '1 ms'`,
    [ms],
  )
}

test('a page repeats an accepted send with its key while the limits refuse: the first answer; with another key: 429 (I26)', async () => {
  const key = await publishableKey(postern.database)
  const body = { channel: 'sms', to: '+8613800138555' }
  const send = (name: string, more = {}) =>
    postern.post(
      '/v1/captchas',
      { ...body, ...more },
      { key, headers: { 'idempotency-key': name } },
    )
  const first = await send('page-first')
  expect(first.status).toBe(202)
  for (let round = 0; round < 3; round++) {
    expect((await send(`page-other-${round}`)).status).toBe(429)
    expect(await send('page-first')).toMatchObject({ status: 202, body: first.body })
    const reused = await send('page-first', { scene: 'other' })
    expect(reused.body.code).toBe('idempotency_key_reused')
  }
  // Refused ones leave nothing.
  const { rows } = await postern.database.pool.query(
    'SELECT count(*)::int AS count FROM idempotency_key WHERE notice_id = $1 OR answer IS NULL',
    [first.body.id],
  )
  expect(rows[0].count).toBe(1)
})

test('a page is refused by load: 503, counted as such, and no fault in the log', async () => {
  const metrics = testMetrics()
  const failed: unknown[] = []
  const log = {
    requestFailed: (_: string, error: unknown) => failed.push(error),
    requestFinished() {},
  }
  const respond = createRespond({
    ...{ metrics, log: log as unknown as Log, underWay: createUnderWay() },
  })
  const answerTo = async (error: Error) => {
    const response = { writeHead: () => response, end() {}, headersSent: false, destroyed: false }
    await respond(
      '/v1/captchas',
      { headers: {}, method: 'POST' } as unknown as Request,
      response as unknown as Response,
      () => Promise.reject(error),
    )
    const { values } = await metrics.shed.get()
    return values.reduce((sum, { value }) => sum + value, 0)
  }
  const overloaded = new Overloaded('postgresql', 'too many wait')
  expect(overloaded.stack ?? '').not.toContain('\n')
  expect(await answerTo(overloaded)).toBe(1)
  expect(failed).toEqual([])
  const away = new Unavailable('postgresql', undefined)
  expect(await answerTo(away)).toBe(1)
  expect(failed).toEqual([away])
})

/** Takes a lock that statements under way may delay. */
const dropTrigger = (name: string) =>
  eventually(async () => {
    await postern.database.pool.query(`DROP TRIGGER IF EXISTS ${name} ON notice`)
    return true
  })

const ended = (state: string, error: string) =>
  `UPDATE notice SET state = '${state}', error = '${error}', due_at = NULL, sealed_params = NULL, finished_at = now() WHERE id = $1`
const endings = {
  'was abandoned': ended('failed', 'abandoned'),
  'is expired': ended('expired', 'too_late'),
  'is not there': 'DELETE FROM notice WHERE id = $1',
}

/** Sends a notice that no worker claims, and ends it in this state. */
async function sendAndEnd(send: () => Promise<Reply>, sql: string): Promise<Reply> {
  await postern.database.pool.query(holdNotices)
  try {
    const first = await send()
    await postern.database.pool.query(sql, [first.body.id])
    return first
  } finally {
    await dropTrigger('hold_notice')
  }
}

describe('a repeat after a 202 whose notice has ended (I26)', () => {
  const { 'was abandoned': _, 'is not there': isGone, ...unsent } = endings
  test.each(Object.entries({ ...unsent, failed: ended('failed', 'rejected') }))(
    'unsent: it %s → ten repeats at once make one other notice, and later repeats get that',
    async (what, sql) => {
      const send = () => notice(`unsent, ${what}`.replaceAll(/\W+/g, '-'))
      const first = await sendAndEnd(send, sql)
      const repeats = await Promise.all(Array.from({ length: 10 }, send))
      const accepted = repeats.filter(({ status }) => status === 202)
      expect(repeats.every(({ status }) => status === 202 || status === 409)).toBe(true)
      const [id, ...more] = new Set(accepted.map(({ body }) => body.id))
      expect([id === first.body.id, more]).toEqual([false, []])
      expect(await postern.messageFor(id)).toMatchObject({ noticeId: id })
      expect((await send()).body.id).toBe(id)
      // The key still belongs to the first content.
      const other = { ...welcome, params: { name: 'Eve', order: 7 } }
      expect((await notice(`unsent, ${what}`.replaceAll(/\W+/g, '-'), other)).status).toBe(422)
    },
  )

  test.each([
    ['it may have been sent', ended('failed', 'outcome_unknown')],
    [
      'it was sent and not delivered',
      `UPDATE notice SET state = 'failed', error = 'not_delivered', due_at = NULL, sealed_params = NULL, sent_at = now(), finished_at = now() WHERE id = $1`,
    ],
    ['its row is gone, or it was for a test recipient', isGone],
  ])('%s → the same answer', async (what, sql) => {
    const send = () => notice(`ended, ${what}`.replaceAll(/\W+/g, '-'))
    const first = await sendAndEnd(send, sql)
    expect(await send()).toMatchObject({ status: 202, body: first.body })
  })
})

describe('a key whose first request never answered is taken over after 30 s', () => {
  const captcha = (headers: Record<string, string>, to: string) =>
    postern.post('/v1/captchas', { channel: 'sms', to }, { headers })

  test('the notice was sent: the repeat names it, and its code passes', async () => {
    const [headers, to] = [{ 'idempotency-key': 'lost-answer' }, '+8618600186000']
    const first = await captcha(headers, to)
    const code = await postern.codeFor(first.body.id)
    await loseAnswer(31_000)
    const repeat = await captcha(headers, to)
    expect(repeat.status).toBe(202)
    expect(repeat.body.id).toBe(first.body.id)
    const check = await postern.post('/v1/captchas/check', { channel: 'sms', to, code })
    expect(check.status).toBe(200)
  })

  test('captchas have no limits: the repeat is still answered, with resendAt now', async () => {
    const unlimited = await startPostern({ policyFile: { policies: noLimits } })
    const headers = { 'idempotency-key': 'no-limits' }
    const send = () =>
      unlimited.post('/v1/captchas', { channel: 'sms', to: '+8618600186000' }, { headers })
    const first = await send()
    await unlimited.codeFor(first.body.id)
    await unlimited.database.pool.query(
      "UPDATE idempotency_key SET answer = NULL, created_at = created_at - interval '31 s'",
    )
    const repeat = await send()
    expect(repeat).toMatchObject({ status: 202, body: { id: first.body.id } })
    expect(Math.abs(Date.parse(repeat.body.resendAt) - Date.now())).toBeLessThan(5_000)
  })

  test.each(Object.entries(endings))(
    'the notice %s: the repeat makes another, later repeats get its id and never the first one (I26)',
    async (what, sql) => {
      const send = () => notice(`taken over, ${what}`.replaceAll(/\W+/g, '-'))
      const first = await sendAndEnd(send, sql)
      await loseAnswer(31_000)
      const repeat = await send()
      expect(repeat.status).toBe(202)
      expect(repeat.body.id).not.toBe(first.body.id)
      expect(await postern.messageFor(repeat.body.id)).toMatchObject({ noticeId: repeat.body.id })
      expect((await send()).body).toEqual(repeat.body)
      await loseAnswer(31_000)
      expect((await send()).body.id).toBe(repeat.body.id)
    },
  )
})

test('the answer of the commit is lost: 503, not silence, and the repeat is accepted for a notice that is sent, the only one (I26)', async () => {
  const proxy = await startTcpProxy(Number(new URL(postern.database.url).port))
  const api = await startPostern({
    on: postern,
    roles: { api: true, worker: false },
    env: { DATABASE_URL: proxy.through(postern.database.url) },
    policyFile: { policies: noLimits },
  })
  const to = '+8615700157000'
  const headers = { 'idempotency-key': 'lost-commit' }
  const send = () => api.post('/v1/captchas', { channel: 'sms', to }, { headers })
  await api.post('/v1/captchas', { channel: 'sms', to: '+8615700157001' })
  // After the row is written, no answer of PostgreSQL arrives.
  const { pool } = postern.database
  const holder = await pool.connect()
  await holder.query('SELECT pg_advisory_lock(1)')
  await pool.query(stopNotices)
  let answered: Promise<{ reply: Reply; tookMs: number }>
  try {
    const startMs = performance.now()
    answered = send().then((reply) => ({ reply, tookMs: performance.now() - startMs }))
    await eventually(async () => {
      const { rows } = await pool.query(
        "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%INSERT INTO notice%' AND wait_event = 'advisory' AND datname = current_database()",
      )
      return rows.length > 0
    })
    proxy.dropAnswers()
  } finally {
    holder.release(true)
    await dropTrigger('stop_notice')
  }
  const { reply, tookMs } = await answered
  expect(reply.status).toBe(503)
  // 2.2 s, plus the delay of a busy machine. Without a deadline there would be no answer at all.
  expect(tookMs).toBeLessThan(10_000)
  proxy.forward()
  proxy.reset()
  const repeat = await eventually(
    async () => {
      const again = await send()
      return again.status === 202 && again
    },
    { everyMs: 100 },
  )
  await postern.codeFor(repeat.body.id)
  const { rows } = await pool.query(
    "SELECT id FROM notice WHERE recipient = $1 AND error IS DISTINCT FROM 'abandoned'",
    [to],
  )
  expect(rows).toEqual([{ id: repeat.body.id }])
})

test('PostgreSQL fails between commit and answer: a sent message is never answered with 503', async () => {
  // Only the write of the answer fails. Everything before it has been committed.
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
