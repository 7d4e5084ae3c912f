/**
 * The worker that most people would write beside hand-written.ts: for each job one UPDATE that claims the row, the
 * message, and one UPDATE that marks it as sent. The message goes to `FAR_END`, by HTTP or SMTP, or else to an outbox in
 * Redis.
 */
import { Worker } from 'bullmq'
import { Redis } from 'ioredis'
import nodemailer from 'nodemailer'
import pg from 'pg'
import { Pool } from 'undici'

const connection = () => new Redis(process.env.REDIS_URL as string, { maxRetriesPerRequest: null })
const redis = connection()
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 })
const connections = Number(process.env.CONNECTIONS ?? 100)
const send = openFarEnd(process.env.FAR_END)

function openFarEnd(url: string | undefined): (to: string, text: string) => Promise<unknown> {
  if (url === undefined) return (to, text) => redis.set(`baseline:outbox:${to}`, text, 'EX', 60)
  if (url.startsWith('smtp:')) {
    const { hostname: host, port } = new URL(url)
    const mails = nodemailer.createTransport({
      ...{ pool: true as const, host, port: Number(port) },
      ...{ maxConnections: connections, maxMessages: Number.POSITIVE_INFINITY },
    })
    const from = 'Acme <no-reply@acme.test>'
    return (to, text) =>
      mails.sendMail({ from, to, subject: 'Your code', text, html: `<p>${text}</p>` })
  }
  const calls = new Pool(url, { connections })
  const headers = { 'content-type': 'application/json' }
  return async (to, text) => {
    const body = JSON.stringify({ to, text })
    const answer = await calls.request({ method: 'POST', path: '/', headers, body })
    return answer.body.json()
  }
}

const worker = new Worker<{ id: string }>(
  'baseline',
  async ({ data: { id } }) => {
    const { rows } = await pool.query(
      "UPDATE baseline_notice SET state = 'sending' WHERE id = $1 RETURNING recipient, params",
      [id],
    )
    const [{ recipient, params }] = rows
    await send(recipient, `Your code is ${params.code}.`)
    await pool.query("UPDATE baseline_notice SET state = 'sent' WHERE id = $1", [id])
  },
  { connection: connection(), concurrency: 100 },
)
await worker.waitUntilReady()
console.log('ready')
process.on('SIGTERM', () => process.exit(0))
