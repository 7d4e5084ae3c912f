/**
 * The routes of adapters/hand-written.ts: three windows per recipient in a sorted set, a code of six digits in Redis with
 * three tries, a row, and a job for hand-written-worker.ts.
 */
import { randomInt } from 'node:crypto'
import { Queue } from 'bullmq'
import express from 'express'
import { Redis } from 'ioredis'
import pg from 'pg'
import { sortedSet } from '../../harness/contenders.ts'

const redis = new Redis(process.env.REDIS_URL as string)
const queue = new Queue('by-hand', { connection: new Redis(process.env.REDIS_URL as string) })
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 })
// A connection that ends while it is idle must not end the process.
pool.on('error', () => {})
await pool.query(
  "CREATE TABLE IF NOT EXISTS by_hand (id UUID PRIMARY KEY, recipient TEXT NOT NULL, code TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'pending')",
)
const limit = sortedSet(redis)
const options = { attempts: 3, backoff: { type: 'exponential', delay: 1_000 } } as const

const app = express().set('env', 'test').use(express.json())

app.post('/send', async ({ body: { to } }, response) => {
  if (!(await limit.check(to))) {
    response.status(429).json({ error: 'too many requests' })
    return
  }
  const id = crypto.randomUUID()
  const code = String(randomInt(1_000_000)).padStart(6, '0')
  await redis.multi().set(`code:${to}`, code, 'EX', 300).del(`tries:${to}`).exec()
  await pool.query('INSERT INTO by_hand (id, recipient, code) VALUES ($1, $2, $3)', [id, to, code])
  await queue.add('send', { id }, { jobId: id, removeOnComplete: true, ...options })
  response.status(202).json({ id })
})

app.post('/check', async ({ body: { to, code } }, response) => {
  const right = await redis.get(`code:${to}`)
  if (!right || (await redis.incr(`tries:${to}`)) > 3) {
    response.json({ result: 'gone' })
    return
  }
  await redis.expire(`tries:${to}`, 300)
  if (code === right) await redis.del(`code:${to}`)
  response.json({ result: code === right ? 'passed' : 'wrong' })
})

app.post('/open', async (_request, response) => {
  response.json({ open: await queue.getJobCountByTypes('active', 'waiting', 'delayed') })
})

app.listen(Number(process.env.PORT), '127.0.0.1', () => console.log('ready'))
process.on('SIGTERM', () => process.exit(0))
