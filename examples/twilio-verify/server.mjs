/**
 * A server that was written for Twilio Verify, and now asks Postern. See docs/guides/twilio-verify.md.
 *
 *   npm install && SECRET_KEY=psk_… node server.mjs
 *   curl localhost:8082/send --data-urlencode to=+8613800138000
 *   curl localhost:8082/check --data-urlencode to=+8613800138000 -d code=123456
 */
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
// #region client
import twilio from 'twilio'

const { POSTERN_URL = 'http://localhost:3000', SECRET_KEY = '', PORT = '8082' } = process.env
const { ACCOUNT_SID = `AC${'0'.repeat(32)}`, SERVICE_SID = `VA${'a'.repeat(32)}` } = process.env
const client = twilio(ACCOUNT_SID, SECRET_KEY)
client.verify.baseUrl = POSTERN_URL
// #endregion client

const service = client.verify.v2.services(SERVICE_SID)
const calls = {
  // #region calls
  '/send': ({ to }) => service.verifications.create({ to, channel: 'sms' }),
  '/check': ({ to, code }) => service.verificationChecks.create({ to, code }),
  // #endregion calls
}

createServer(async (request, response) => {
  const call = calls[request.url]
  if (request.method !== 'POST' || !call) return response.writeHead(404).end()
  try {
    const form = Object.fromEntries(new URLSearchParams(await text(request)))
    const { status } = await call(form)
    response.end(`${status}\n`)
  } catch ({ status = 500, code = 0, message }) {
    response.writeHead(status).end(`${code} ${message}\n`)
  }
}).listen(Number(PORT), '127.0.0.1', () => console.log(`http://localhost:${PORT}`))
