/**
 * The route most people would write by hand: one EVALSHA for the limit, one INSERT, one queue.add, each
 * awaited, no batches. The baseline for accepted sends.
 */
import { Queue } from 'bullmq'
import express from 'express'
import { Redis } from 'ioredis'
import pg from 'pg'

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

const app = express()
app.use(express.json())
app.post('/captchas', async (request, response) => {
  const { to } = request.body as { to: string }
  const waitMs = await redis.evalsha(sha, 1, `baseline:${to}`)
  if (Number(waitMs) > 0) {
    response.status(429).json({ error: 'too many requests' })
    return
  }
  const id = crypto.randomUUID()
  await pool.query(
    'INSERT INTO baseline_notice (id, recipient, template, params) VALUES ($1, $2, $3, $4)',
    [id, to, 'captcha', { code: '1234' }],
  )
  await queue.add('send', { id }, { jobId: id, removeOnComplete: true, removeOnFail: true })
  response.status(202).json({ id })
})
app.listen(Number(process.env.PORT), '127.0.0.1', () => console.log('ready'))
process.on('SIGTERM', () => process.exit(0))
