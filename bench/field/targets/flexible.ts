/**
 * The routes of adapters/flexible.ts, as the library's pages show them: a union of three windows per recipient, a limit per
 * address, and wrong codes per recipient. A code of six digits lies in Redis. The message is sent within the request.
 */
import { randomInt } from 'node:crypto'
import express from 'express'
import { Redis } from 'ioredis'
import { RateLimiterRedis, RateLimiterUnion } from 'rate-limiter-flexible'

const redis = new Redis(process.env.REDIS_URL as string)
const limiter = (keyPrefix: string, points: number, duration: number) =>
  new RateLimiterRedis({ storeClient: redis, keyPrefix, points, duration })
const recipients = new RateLimiterUnion(
  limiter('minute', 1, 60),
  limiter('hour', 5, 3_600),
  limiter('day', 10, 86_400),
)
const addresses = limiter('ip', 30, 86_400)
const tries = limiter('tries', 3, 300)

/** Milliseconds to wait, or 0 if the request is within the limit. */
async function waitOf(consumed: Promise<unknown>): Promise<number> {
  try {
    await consumed
    return 0
  } catch (refused) {
    if (refused instanceof Error) throw refused
    const all = 'msBeforeNext' in (refused as object) ? [refused] : Object.values(refused as object)
    return Math.max(1, ...all.map(({ msBeforeNext }) => msBeforeNext))
  }
}

const app = express().set('env', 'test').set('trust proxy', 1).use(express.json())

app.post('/send', async ({ body: { to }, ip = '' }, response) => {
  const waitMs = (await waitOf(addresses.consume(ip))) || (await waitOf(recipients.consume(to)))
  if (waitMs > 0) {
    const seconds = String(Math.ceil(waitMs / 1_000))
    response.status(429).set('retry-after', seconds).json({ error: 'too many requests' })
    return
  }
  const code = String(randomInt(1_000_000)).padStart(6, '0')
  await Promise.all([redis.set(`code:${to}`, code, 'EX', 300), tries.delete(to)])
  const answer = await fetch(process.env.PROVIDER_URL as string, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ to, text: `Your code is ${code}.` }),
    signal: AbortSignal.timeout(5_000),
  })
  if (!answer.ok) throw new Error(`the provider answered ${answer.status}`)
  response.json({ sent: true })
})

app.post('/check', async ({ body: { to, code } }, response) => {
  const right = await redis.get(`code:${to}`)
  if (!right || (await waitOf(tries.consume(to))) > 0) {
    response.json({ result: 'gone' })
    return
  }
  if (code === right) await redis.del(`code:${to}`)
  response.json({ result: code === right ? 'passed' : 'wrong' })
})

app.listen(Number(process.env.PORT), '127.0.0.1', () => console.log('ready'))
process.on('SIGTERM', () => process.exit(0))
