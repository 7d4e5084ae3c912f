import { expect, test } from 'vitest'
import { noLimits, startPostern } from '../support/postern.ts'

const postern = await startPostern({ policyFile: { policies: noLimits } })

test('a code is sent, passes once and never again', async () => {
  const to = '+8613800138000'
  const sent = await postern.post('/v1/captchas', { channel: 'sms', to })
  expect(sent.status).toBe(202)
  const code = await postern.codeFor(to)
  const check = () => postern.post('/v1/captchas/check', { channel: 'sms', to, code })
  expect(await check()).toMatchObject({ status: 200, body: { verified: true, id: sent.body.id } })
  expect(await check()).toMatchObject({ status: 410, body: { code: 'code_gone' } })
})
