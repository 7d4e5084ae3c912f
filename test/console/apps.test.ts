/** Apps that have no API key: they send by a façade, or in process. */
import { expect, test } from 'vitest'
import { eventually } from '../tools/wait.ts'
import { openConsole } from './open-console.ts'

const secret = 'a secret of the hook, long enough'
const lockout = { limit: 3, window: '5m', lock: '15m' }
const { postern, createOperator, client } = await openConsole({
  policyFile: {
    policies: {
      captcha: [{ name: 'recipient', key: '{app}:{channel}:{to}', sliding: '1 per 1h' }],
      notice: [],
      check: [{ name: 'guesses', key: '{app}:{channel}:{to}', lockout }],
    },
    compat: { hooks: { auth: { kind: 'logto', secret, app: 'hooked', scene: 'login' } } },
  },
})
const anna = client()
await anna.signIn((await createOperator()).token)

const send = (to: string) =>
  postern.post(
    '/v1/hooks/auth',
    { to, type: 'SignIn', payload: { code: '135790' } },
    { key: secret },
  )

test('an app of a hook: the story of its recipient, the link of its notice, and the reset of its limit', async () => {
  const to = '+8613800138077'
  expect((await send(to)).status).toBeLessThan(300)
  expect((await send(to)).status).toBeGreaterThanOrEqual(400)
  const story = await eventually(async () => {
    const { text } = await anna.submit('/search', { q: to })
    return text.includes('recipient') && text.includes('hooked') && text
  })
  const action = /action="(\/story\/[^"]+)\/reset"/.exec(story)?.[1]
  const notice = /\/notices\/[0-9a-f-]{36}/.exec((await anna.get('/notices')).text)?.[0] as string
  const link = await anna.get(notice)
  expect(link.status).toBe(200)
  expect(link.text).toContain('hooked')
  const form = { app: 'hooked', limits: 'on', reason: 'asked by the person' }
  expect((await anna.submit(`${action}/reset`, form)).status).toBe(200)
  expect((await send(to)).status).toBeLessThan(300)
})
