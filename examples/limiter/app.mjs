import express from 'express'
import { Redis } from 'ioredis'
import { createLimiter, rateLimit } from 'postern-limiter'

const app = express()
app.use(express.json())
const redis = new Redis(process.env.REDIS_URL)
const logIn = (request, response) => response.json({ welcome: request.body.user })

// #region lock
const limiter = createLimiter({
  policies: {
    login: [{ name: 'tries', key: '{user}', lockout: { limit: 3, window: '5m', lock: '15m' } }],
  },
  redis, // an ioredis connection; without it, in process
})
app.post(
  '/login',
  rateLimit(limiter, 'login', (req) => ({ user: req.body?.user })),
  logIn,
)
// #endregion lock

app.listen(Number(process.env.PORT ?? 3000))
