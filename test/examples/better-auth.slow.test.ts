/** examples/better-auth with the real package, which makes and checks the codes. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { noLimits, startPostern } from '../tools/postern.ts'
import { installExamples, startServer } from './run-example.ts'

interface Body {
  user?: { email: string }
}

test('examples/better-auth: its codes are sent by SMS and mail and pass there; a refused SMS has its status', async () => {
  const folder = await installExamples(['better-auth'])
  const recipient = { name: 'recipient', key: '{channel}:{to}', sliding: '1 per 1h' }
  const postern = await startPostern({
    policyFile: { code: { own: true }, policies: { ...noLimits, captcha: [recipient] } },
  })
  const env = { POSTERN_URL: postern.url, SECRET_KEY: postern.key }
  const { origin } = await startServer('server.mjs', () => env, join(folder, 'better-auth'))
  const call = async (path: string, body: object) => {
    const headers = { 'content-type': 'application/json', origin }
    const request = { method: 'POST', headers, body: JSON.stringify(body) }
    const answer = await fetch(`${origin}/api/auth${path}`, request)
    return { status: answer.status, body: (await answer.json()) as Body }
  }
  const phoneNumber = '+8613800138000'
  const sendSms = () => call('/phone-number/send-otp', { phoneNumber })
  expect((await sendSms()).status).toBe(200)
  const code = await postern.codeFor(phoneNumber)
  expect(code).toMatch(/^\d{6}$/)
  expect((await call('/phone-number/verify', { phoneNumber, code: '000' })).status).toBe(400)
  const verified = await call('/phone-number/verify', { phoneNumber, code })
  expect(verified).toMatchObject({ status: 200, body: { status: true } })

  const email = 'ada@example.com'
  const sendMail = () => call('/email-otp/send-verification-otp', { email, type: 'sign-in' })
  expect((await sendMail()).status).toBe(200)
  const otp = await postern.codeFor(email)
  expect((await call('/sign-in/email-otp', { email, otp })).body.user?.email).toBe(email)

  expect(await sendSms()).toMatchObject({ status: 429, body: { code: 'limited' } })
  // For mail, better-auth logs the refusal and hides it from the page.
  expect(await sendMail()).toMatchObject({ status: 200 })
  expect(await postern.messages(email)).toHaveLength(1)
})
