/** A host with Express 4, whose body parsers set an empty body for a request that they leave unread. */
import { createServer } from 'node:http'
import express from 'express'
import { expect, test } from 'vitest'
import { createPostern } from '../../src/main/create-postern.ts'
import { signTwilio } from '../providers/far-ends/twilio.ts'
import { testDatabase } from '../tools/database.ts'
import { listen } from '../tools/listen.ts'
import { noLimits, posternEnv } from '../tools/postern.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater } from '../tools/release.ts'

const statusCallback = 'https://host.example/otp/v1/receipts/twilio'
const environment = posternEnv({
  redis: await testRedis(),
  database: await testDatabase(),
  policyFile: {
    policies: noLimits,
    providers: {
      twilio: {
        kind: 'twilio',
        accountSid: `AC${'0'.repeat(32)}`,
        authToken: 'token',
        from: '+15005550006',
        statusCallback,
      },
      plain: { kind: 'sandbox' },
    },
    routes: { sms: [{ use: ['twilio'] }], email: [{ use: ['plain'] }] },
  },
})
const postern = closeLater(await createPostern({ environment }))

const parsers: express.RequestHandler = (request, _, next) => {
  request.body ??= {}
  next()
}
const url = await listen(createServer(express().use(parsers).use('/otp', postern.router)))
const post = (path: string, type: string, body: string, more: Record<string, string> = {}) =>
  fetch(`${url}/otp${path}`, { method: 'POST', headers: { 'content-type': type, ...more }, body })

test('a send in JSON and a receipt as a form are read', async () => {
  const authorization = `Bearer ${environment.BOOTSTRAP_SECRET_KEY}`
  const sent = await post(
    '/v1/captchas',
    'application/json',
    JSON.stringify({ channel: 'sms', to: '+8613800138000', scene: 'login' }),
    { authorization },
  )
  expect([sent.status, await sent.text()]).toEqual([202, expect.stringContaining('"id"')])
  const form = new URLSearchParams({
    MessageSid: `SM${'0'.repeat(32)}`,
    MessageStatus: 'delivered',
  })
  const signature = signTwilio('token', statusCallback, form)
  const receipt = await post(
    '/v1/receipts/twilio',
    'application/x-www-form-urlencoded',
    form.toString(),
    { 'x-twilio-signature': signature },
  )
  expect(receipt.status).toBeLessThan(300)
})

test('a request without a body: 400, and the body is named as missing', async () => {
  const authorization = `Bearer ${environment.BOOTSTRAP_SECRET_KEY}`
  const answer = await fetch(`${url}/otp/v1/captchas`, {
    method: 'POST',
    headers: { authorization },
  })
  expect([answer.status, await answer.text()]).toEqual([
    400,
    expect.stringContaining('the body is missing'),
  ])
})
