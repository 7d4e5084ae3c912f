/**
 * A program for CAMARA's one-time-password-sms. Only the address and the token are Postern's. See docs/guides/camara.md.
 *
 *   SECRET_KEY=psk_… node client.mjs send +8613800138000
 *   SECRET_KEY=psk_… node client.mjs validate 019aa6b0-… 1234
 */
import { randomUUID } from 'node:crypto'

// #region client
const { API_ROOT = 'http://localhost:3000', SECRET_KEY } = process.env

async function call(operation, body) {
  const answer = await fetch(`${API_ROOT}/one-time-password-sms/v1/${operation}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${SECRET_KEY}`,
      'content-type': 'application/json',
      'x-correlator': randomUUID(),
    },
    body: JSON.stringify(body),
  })
  if (answer.status === 204) return {}
  const { code, message, ...result } = await answer.json()
  if (!answer.ok) throw new Error(`${code}: ${message}`)
  return result
}
// #endregion client

const message = '{{code}} is your code for the shop.'
const [operation, first, code] = process.argv.slice(2)
try {
  if (operation === 'send') {
    console.log((await call('send-code', { phoneNumber: first, message })).authenticationId)
  } else {
    await call('validate-code', { authenticationId: first, code })
    console.log('verified')
  }
} catch (error) {
  console.log(error.message)
}
