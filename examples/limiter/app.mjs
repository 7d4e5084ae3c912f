import express from 'express'
import { Redis } from 'ioredis'
import { createLimiter, rateLimit } from 'postern-limiter'

const app = express()
app.use(express.json())
const redis = new Redis(process.env.REDIS_URL)
const isRight = (user, password) => user === 'ada' && password === 'open sesame'

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
  async (req, res) => {
    const { user, password } = req.body
    if (!isRight(user, password)) return res.status(401).end()
    await limiter.reset('login', { user }) // only wrong passwords count
    res.json({ welcome: user })
  },
)
// #endregion lock

app.listen(Number(process.env.PORT ?? 3000))
