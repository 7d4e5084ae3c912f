/** The worker beside hand-written-server.ts: it posts a message to the provider, and marks the row. */
import { Worker } from 'bullmq'
import { Redis } from 'ioredis'
import pg from 'pg'

const redis = new Redis(process.env.REDIS_URL as string, { maxRetriesPerRequest: null })
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 })
// A connection that ends while it is idle must not end the process.
pool.on('error', () => {})

const worker = new Worker<{ id: string }>(
  'by-hand',
  async ({ data: { id } }) => {
    const { rows } = await pool.query('SELECT recipient, code FROM by_hand WHERE id = $1', [id])
    const [{ recipient, code }] = rows
    const answer = await fetch(process.env.PROVIDER_URL as string, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ to: recipient, text: `Your code is ${code}.` }),
      signal: AbortSignal.timeout(5_000),
    })
    if (!answer.ok) throw new Error(`the provider answered ${answer.status}`)
    await pool.query("UPDATE by_hand SET state = 'sent' WHERE id = $1", [id])
  },
  { connection: redis, concurrency: 50 },
)
worker.on('error', () => {})
await worker.waitUntilReady()
console.log('ready')
process.on('SIGTERM', () => process.exit(0))
