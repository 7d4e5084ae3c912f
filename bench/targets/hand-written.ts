/**
 * Routes that most people would write by hand in Express; the bench compares Postern with them. There is an echo, and a
 * refusal by one EVALSHA. A send awaits one EVALSHA, one INSERT and one queue.add. A second send makes one INSERT and one
 * addBulk per tick of the event loop. The third send is in whole-send.ts. Another server of it refuses what is too much.
 */
import { createServer } from 'node:http'
import { Queue } from 'bullmq'
import express from 'express'
import { Redis } from 'ioredis'
import pg from 'pg'
import { addWholeSend } from './whole-send.ts'

const redis = new Redis(process.env.REDIS_URL as string)
const queue = new Queue('baseline', { connection: new Redis(process.env.REDIS_URL as string) })
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 })
await pool.query(`CREATE TABLE IF NOT EXISTS baseline_notice (
  id UUID PRIMARY KEY, recipient TEXT NOT NULL, template TEXT NOT NULL, params JSONB NOT NULL,
  state TEXT NOT NULL DEFAULT 'pending', created_at TIMESTAMPTZ NOT NULL DEFAULT now())`)

const limit = `
  local used = tonumber(redis.call('GET', KEYS[1]) or '0')
  if used >= 1 then return redis.call('PTTL', KEYS[1]) end
  redis.call('SET', KEYS[1], used + 1, 'PX', 60000)
  return 0`
const sha = (await redis.script('LOAD', limit)) as string
const params = { code: '1234' }
const jobOptions = { removeOnComplete: true, removeOnFail: true }

interface Send {
  id: string
  to: string
}

async function sendAlone({ id, to }: Send): Promise<void> {
  await pool.query(
    'INSERT INTO baseline_notice (id, recipient, template, params) VALUES ($1, $2, $3, $4)',
    [id, to, 'captcha', params],
  )
  await queue.add('send', { id }, { jobId: id, ...jobOptions })
}

let tick: { sends: Send[]; sent: Promise<void> } | undefined

function sendWithTick(send: Send): Promise<void> {
  if (!tick) {
    const sends: Send[] = []
    const sent = new Promise<void>((resolve, reject) => {
      setImmediate(() => {
        tick = undefined
        sendAll(sends).then(resolve, reject)
      })
    })
    tick = { sends, sent }
  }
  tick.sends.push(send)
  return tick.sent
}

async function sendAll(sends: readonly Send[]): Promise<void> {
  await pool.query(
    `INSERT INTO baseline_notice (id, recipient, template, params)
     SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::jsonb[])`,
    [
      sends.map(({ id }) => id),
      sends.map(({ to }) => to),
      sends.map(() => 'captcha'),
      sends.map(() => params),
    ],
  )
  await queue.addBulk(
    sends.map(({ id }) => ({ name: 'send', data: { id }, opts: { jobId: id, ...jobOptions } })),
  )
}

// With NODE_ENV=production. Otherwise Express logs every refused body.
const app = express().set('env', 'test')
app.use(express.json())
app.post('/echo', (request, response) => {
  response.json(request.body)
})

const post = (path: string, carryOut: (send: Send) => Promise<void>) =>
  app.post(path, async (request, response) => {
    const { to } = request.body as { to: string }
    const waitMs = await redis.evalsha(sha, 1, `baseline:${to}`)
    if (Number(waitMs) > 0) {
      response.status(429).json({ error: 'too many requests' })
      return
    }
    const id = crypto.randomUUID()
    await carryOut({ id, to })
    response.status(202).json({ id })
  })
post('/one-by-one', sendAlone)
post('/per-tick', sendWithTick)

await addWholeSend({ app, pool, queue, jobOptions })

/** The third send again, of which this many run at a time. All others are refused, before Express has them. */
const maxSends = 500
let sends = 0
const refusal = JSON.stringify({ error: 'try again later' })
const server = createServer((request, response) => {
  const isRefused = request.url === '/refuse' || sends >= maxSends
  if (isRefused && request.url !== '/whole') {
    const head = { 'content-type': 'application/json', 'content-length': refusal.length }
    response.writeHead(503, { 'retry-after': '2', ...head }).end(refusal)
    return
  }
  if (request.url === '/whole-or-503') {
    request.url = '/whole'
    sends += 1
    response.once('close', () => {
      sends -= 1
    })
  }
  app(request, response)
})
server.listen(Number(process.env.PORT), '127.0.0.1', () => console.log('ready'))
process.on('SIGTERM', () => process.exit(0))
