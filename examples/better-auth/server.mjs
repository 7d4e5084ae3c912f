/**
 * better-auth makes and checks the codes, Postern sends them. See docs/guides/better-auth.md.
 *
 *   npm install && SECRET_KEY=psk_… node server.mjs
 */
import { createServer } from 'node:http'
import { betterAuth } from 'better-auth'
import { memoryAdapter } from 'better-auth/adapters/memory'
import { APIError } from 'better-auth/api'
import { toNodeHandler } from 'better-auth/node'
import { emailOTP, phoneNumber } from 'better-auth/plugins'

const { POSTERN_URL = 'http://localhost:3000', SECRET_KEY, PORT = '8084' } = process.env

// #region send
async function send(asked) {
  const headers = { authorization: `Bearer ${SECRET_KEY}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ scene: 'login', ...asked })
  const answer = await fetch(`${POSTERN_URL}/v1/captchas`, { method: 'POST', headers, body })
  const { status, code, detail } = await answer.json()
  if (!answer.ok) throw new APIError(status, { code, message: detail })
}
// #endregion send

// #region plugins
const plugins = [
  phoneNumber({
    sendOTP: ({ phoneNumber: to, code }) => send({ channel: 'sms', to, code }),
    signUpOnVerification: { getTempEmail: (to) => `${to}@phone.example` },
  }),
  emailOTP({
    sendVerificationOTP: ({ email: to, otp: code }) => send({ channel: 'email', to, code }),
  }),
]
// #endregion plugins

// Yours is a database.
const database = memoryAdapter({ user: [], session: [], account: [], verification: [] })
const baseURL = `http://localhost:${PORT}`
const secret = 'an example has no secret worth keeping'
const rateLimit = { enabled: false }
const auth = betterAuth({ baseURL, secret, database, plugins, rateLimit })

createServer(toNodeHandler(auth)).listen(Number(PORT), '127.0.0.1', () => console.log(baseURL))
