/** Rules that captcha and check include from a policy of the operator: support sees them, and a reset clears them. */
import { expect, test } from 'vitest'
import { startPostern } from '../tools/postern.ts'
import { eventually } from '../tools/wait.ts'

const person = { channel: 'sms', to: '+8613800138077' }
const tester = { channel: 'sms', to: '+15005550006' }
const postern = await startPostern({
  policyFile: {
    code: { length: 4, triesPerCode: 5 },
    testing: { recipients: [{ to: tester.to, code: '0042' }], until: '2999-12-31' },
    compat: { camara: {} },
    policies: {
      captcha: [{ include: 'shared' }],
      notice: [],
      check: [{ include: 'locks' }],
      shared: [{ name: 'recipient', key: '{app}:{to}', sliding: '1 per 1h' }],
      locks: [
        { name: 'guesses', key: '{app}:{to}', lockout: { limit: 2, window: '5m', lock: '15m' } },
      ],
    },
  },
})
const send = async () => (await postern.post('/v1/captchas', person)).status
const guess = async (code: string) =>
  (await postern.post('/v1/captchas/check', { ...person, code })).status
const lookUp = async () => (await postern.post('/v1/recipients/lookup', person)).body
const reset = async (what: string) =>
  (await postern.post('/v1/recipients/reset', { ...person, what: [what], reason: 'asked' })).status

test('a look-up shows their counts and locks, and a reset clears them', async () => {
  expect([await send(), await send()]).toEqual([202, 429])
  expect((await lookUp()).limits).toContainEqual(
    expect.objectContaining({ policy: 'shared', rule: 'recipient', used: 1, limit: 1 }),
  )
  const code = await postern.codeFor(person.to)
  const wrong = code === '0000' ? '1111' : '0000'
  expect([await guess(wrong), await guess(wrong), await guess(code)]).toEqual([422, 422, 429])
  expect((await lookUp()).lockedForMs).toBeGreaterThan(0)
  // The history is written aside.
  await eventually(async () => (await lookUp()).checks[0]?.result === 'refused')
  expect(await reset('lock')).toBe(204)
  expect((await lookUp()).lockedForMs).toBeUndefined()
  expect(await guess(code)).toBe(200)
  expect([await send(), await reset('limits'), await send()]).toEqual([429, 204, 202])
})

test('a test recipient has no separate limit, also where a policy of a plugin decides', async () => {
  const sendCode = () =>
    postern.post('/one-time-password-sms/v1/send-code', {
      phoneNumber: tester.to,
      message: '{{code}} is your code',
    })
  const statuses = []
  for (let count = 0; count < 3; count++) statuses.push((await sendCode()).status)
  expect(statuses).toEqual([200, 200, 200])
})
