/** The app of adapters/embedded.ts: an Express app with its own routes, and Postern as functions and worker. */
import express, { type Response } from 'express'
import pg from 'pg'
import { createPostern } from '../../../src/main/create-postern.ts'

const postern = await createPostern()
postern.startWorker()
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 2 })
// A connection that ends while it is idle must not end the process.
pool.on('error', () => {})

const answer = (response: Response, outcome: { outcome: string }) =>
  response.status(outcome.outcome === 'unavailable' ? 503 : 200).json(outcome)

const app = express().set('env', 'test').set('trust proxy', 1).use(express.json())
app.post('/send', async ({ body, ip }, response) => {
  answer(response, await postern.sendCaptcha({ app: 'shop', ...body, ip }))
})
app.post('/check', async ({ body, ip }, response) => {
  answer(response, await postern.checkCaptcha({ app: 'shop', ...body, ip }))
})
app.post('/open', async (_request, response) => {
  const query = "SELECT count(*)::int AS open FROM notice WHERE state IN ('pending', 'sending')"
  response.json((await pool.query(query)).rows[0])
})
app.get('/metrics', async (_request, response) => {
  response.type('text').send(await postern.metrics())
})
app.listen(Number(process.env.PORT), '127.0.0.1', () => console.log('ready'))
process.on('SIGTERM', () => process.exit(0))
