/**
 * The worker that most people would write beside hand-written.ts: for each job one UPDATE that claims the row, an
 * outbox in Redis for the message, and one UPDATE that marks it as sent.
 */
import { Worker } from 'bullmq'
import { Redis } from 'ioredis'
import pg from 'pg'

const connection = () => new Redis(process.env.REDIS_URL as string, { maxRetriesPerRequest: null })
const redis = connection()
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 })

const worker = new Worker<{ id: string }>(
  'baseline',
  async ({ data: { id } }) => {
    const { rows } = await pool.query(
      "UPDATE baseline_notice SET state = 'sending' WHERE id = $1 RETURNING recipient, params",
      [id],
    )
    const [{ recipient, params }] = rows
    await redis.set(`baseline:outbox:${recipient}`, `Your code is ${params.code}.`, 'EX', 60)
    await pool.query("UPDATE baseline_notice SET state = 'sent' WHERE id = $1", [id])
  },
  { connection: connection(), concurrency: 100 },
)
await worker.waitUntilReady()
console.log('ready')
process.on('SIGTERM', () => process.exit(0))
