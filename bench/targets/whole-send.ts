/**
 * A send by hand that does the work of Postern's send. It checks a key, a schema and a number. It counts two rules under
 * hashed names, and looks for a lock of checks. It stores a code's digest, a sealed row and a job. It makes spans,
 * metrics and a log line. One INSERT and one addBulk serve a tick of the event loop.
 *
 * It is less than Postern's send: no Idempotency-Key, no challenge, no time limit for its answer, and no limit that
 * slides. After a fault, nothing is undone.
 */
import {
  createCipheriv,
  createHmac,
  createSecretKey,
  hash,
  randomBytes,
  randomInt,
  randomUUID,
} from 'node:crypto'
import { trace } from '@opentelemetry/api'
import type { JobsOptions, Queue } from 'bullmq'
import type { Express } from 'express'
import { Redis } from 'ioredis'
import type { Pool } from 'pg'
import { pino } from 'pino'
import { Counter, Histogram } from 'prom-client'
import { z } from 'zod'

const createTable = `
  CREATE TABLE IF NOT EXISTS baseline_whole (
    id UUID PRIMARY KEY, app TEXT NOT NULL, channel TEXT NOT NULL, recipient TEXT NOT NULL,
    recipient_hash BYTEA NOT NULL, scene TEXT NOT NULL, template TEXT NOT NULL, sealed BYTEA NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending', created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    expires_at TIMESTAMPTZ NOT NULL);
  CREATE INDEX IF NOT EXISTS baseline_whole_hash ON baseline_whole (recipient_hash, id);
  CREATE INDEX IF NOT EXISTS baseline_whole_due ON baseline_whole (created_at)`

const insert = `
  INSERT INTO baseline_whole
    (id, app, channel, recipient, recipient_hash, scene, template, sealed, expires_at)
  SELECT *, now() + interval '5 minutes'
  FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::text[], $7::text[],
              $8::bytea[])`

/** All keys or none: a count and its limit, and how long it lives. */
const limitScript = `
  for i, key in ipairs(KEYS) do
    if tonumber(redis.call('GET', key) or '0') >= tonumber(ARGV[i * 2 - 1]) then
      return redis.call('PTTL', key)
    end
  end
  for i, key in ipairs(KEYS) do
    if redis.call('INCR', key) == 1 then redis.call('PEXPIRE', key, ARGV[i * 2]) end
  end
  return 0`
const limits = [2, 60_000, 1, 60_000, 5, 3_600_000, 10, 86_400_000]

const schema = z.strictObject({
  channel: z.enum(['sms', 'email']),
  to: z.string().max(254),
  scene: z.string().regex(/^[a-z0-9-]{1,32}$/),
  template: z
    .string()
    .regex(/^[a-z0-9-]{1,64}$/)
    .default('captcha'),
  params: z.record(z.string(), z.string()).default({}),
})

interface Row {
  id: string
  app: string
  channel: string
  to: string
  recipientHash: Buffer
  scene: string
  template: string
  sealed: Buffer
}

const secret = createSecretKey(randomBytes(32))
const hmac = (algorithm: string, text: string) => createHmac(algorithm, secret).update(text)

function seal(text: string, context: string): Buffer {
  const iv = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', secret, iv)
  cipher.setAAD(Buffer.from(context))
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), sealed])
}

/** Calls `run` once per tick of the event loop, with all items of the tick. */
function perTick<Item>(run: (items: readonly Item[]) => Promise<unknown>) {
  let tick: { items: Item[]; done: Promise<unknown> } | undefined
  return (item: Item): Promise<unknown> => {
    if (!tick) {
      const items: Item[] = []
      const done = new Promise((resolve, reject) => {
        setImmediate(() => {
          tick = undefined
          run(items).then(resolve, reject)
        })
      })
      tick = { items, done }
    }
    tick.items.push(item)
    return tick.done
  }
}

export async function addWholeSend(deps: {
  app: Express
  pool: Pool
  queue: Queue
  jobOptions: JobsOptions
}): Promise<void> {
  const { app, pool, queue, jobOptions } = deps
  const redis = new Redis(process.env.REDIS_URL as string, { enableAutoPipelining: true })
  const sha = (await redis.script('LOAD', limitScript)) as string
  await pool.query(createTable)
  const callers = new Map([[hash('sha256', process.env.BOOTSTRAP_SECRET_KEY ?? ''), 'default']])
  const log = pino()
  const tracer = trace.getTracer('by hand')
  const requests = new Counter({ name: 'requests', help: '-', labelNames: ['route', 'status'] })
  const seconds = new Histogram({ name: 'seconds', help: '-', labelNames: ['route'] })

  const insertRow = perTick<Row>((rows) => {
    const column = (name: keyof Row) => rows.map((row) => row[name])
    const names = ['id', 'app', 'channel', 'to', 'recipientHash', 'scene', 'template', 'sealed']
    const values = (names as (keyof Row)[]).map(column)
    return pool.query({ name: 'whole', text: insert, values })
  })
  const addJob = perTick<string>((ids) =>
    queue.addBulk(
      ids.map((id) => ({ name: 'send', data: { id }, opts: { jobId: id, ...jobOptions } })),
    ),
  )

  app.post('/whole', async (request, response) => {
    const startMs = performance.now()
    const requestId = randomUUID()
    const token = /^Bearer (\S{1,200})$/.exec(request.headers.authorization ?? '')?.[1] ?? ''
    const caller = callers.get(hash('sha256', token))
    const parsed = schema.safeParse(request.body)
    if (!caller || !parsed.success || !/^\+861[3-9]\d{9}$/.test(parsed.data.to)) {
      response.status(caller ? 400 : 401).json({ error: 'not valid' })
      return
    }
    const span = tracer.startSpan('POST /whole')
    const { channel, to, scene, template, params } = parsed.data
    const content = hmac('md5', JSON.stringify([to, template, params])).digest('hex')
    const recipientHash = hmac('sha256', `${channel} ${to}`).digest()
    const name = recipientHash.toString('base64url')
    const locking = redis.pttl(`baseline:lock:${name}`)
    const counts = [content, `minute:${name}`, `hour:${name}`, `day:${name}`]
    const keys = counts.map((count) => `baseline:${count}`)
    const waitMs = await redis.evalsha(sha, keys.length, ...keys, ...limits)
    if (Number(waitMs) > 0) {
      response.status(429).json({ error: 'too many requests' })
      return
    }
    const id = randomUUID()
    const code = String(randomInt(10_000)).padStart(4, '0')
    const owner = [caller, scene, channel, to]
    const digest = hmac('sha256', JSON.stringify([...owner, code])).digest('base64url')
    await redis.set(`baseline:code:${name}`, `${id} 3 ${digest}`, 'PX', 300_000)
    const sealed = seal(JSON.stringify({ ...params, code, minutes: 5 }), id)
    await insertRow({ id, app: caller, channel, to, recipientHash, scene, template, sealed })
    addJob(id).catch(() => {})
    const lockedForMs = await locking
    const after = (ms: number) => new Date(Date.now() + ms).toISOString()
    response.set({ 'x-request-id': requestId, 'cache-control': 'no-store' })
    response.status(202).json({
      id,
      state: 'pending',
      channel,
      to: `${to.slice(0, 6)}****${to.slice(-4)}`,
      scene,
      codeLength: code.length,
      createdAt: after(0),
      expiresAt: after(300_000),
      resendAt: after(60_000),
      ...(lockedForMs > 0 ? { lockedForMs } : {}),
    })
    const ms = performance.now() - startMs
    requests.inc({ route: '/whole', status: '202' })
    seconds.observe({ route: '/whole' }, ms / 1_000)
    log.info({ requestId, app: caller, noticeId: id, status: 202, ms }, 'request finished')
    span.end()
  })
}
