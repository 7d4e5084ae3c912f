/**
 * better-auth with codes by SMS and mail, its own rules, its limiter in Redis and its rows in PostgreSQL. It sends within
 * the request, as its documentation does. Run from a folder that has its packages: see ../../adapters/better-auth.ts.
 */
import { createServer } from 'node:http'
import { betterAuth } from 'better-auth'
import { APIError } from 'better-auth/api'
import { getMigrations } from 'better-auth/db/migration'
import { toNodeHandler } from 'better-auth/node'
import { emailOTP, phoneNumber } from 'better-auth/plugins'
import { Redis } from 'ioredis'
import pg from 'pg'

const { PORT, DATABASE_URL, REDIS_URL, PROVIDER_URL, SECRET } = process.env
const redis = new Redis(REDIS_URL)
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 10 })
// A connection that ends while it is idle must not end the process.
pool.on('error', () => {})

async function send(to, code) {
  const answer = await fetch(PROVIDER_URL, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ to, text: `Your code is ${code}.` }),
    signal: AbortSignal.timeout(5_000),
  }).catch((cause) => {
    throw new APIError('BAD_GATEWAY', { message: 'the provider is away', cause })
  })
  if (!answer.ok)
    throw new APIError('BAD_GATEWAY', { message: `the provider answered ${answer.status}` })
}

const options = {
  baseURL: `http://127.0.0.1:${PORT}`,
  secret: SECRET,
  database: pool,
  // Only the limiter: the codes stay in PostgreSQL.
  rateLimit: {
    enabled: true,
    storage: 'secondary-storage',
  },
  verification: { storeInDatabase: true },
  secondaryStorage: {
    get: (key) => redis.get(key),
    set: (key, value, ttl) => (ttl ? redis.set(key, value, 'EX', ttl) : redis.set(key, value)),
    delete: (key) => redis.del(key),
    async increment(key, ttl) {
      const [[, count]] = await redis.multi().incr(key).expire(key, ttl, 'NX').exec()
      return count
    },
  },
  logger: { disabled: true },
  onAPIError: { onError: () => {} },
  advanced: { ipAddress: { ipAddressHeaders: ['x-forwarded-for'] } },
  plugins: [
    phoneNumber({
      sendOTP: ({ phoneNumber: to, code }) => send(to, code),
      signUpOnVerification: { getTempEmail: (to) => `${to.slice(1)}@phone.example` },
    }),
    emailOTP({ sendVerificationOTP: ({ email, otp }) => send(email, otp) }),
  ],
}
await (await getMigrations(options)).runMigrations()
const auth = betterAuth(options)

createServer(toNodeHandler(auth)).listen(Number(PORT), '127.0.0.1', () => console.log('ready'))
process.on('SIGTERM', () => process.exit(0))
