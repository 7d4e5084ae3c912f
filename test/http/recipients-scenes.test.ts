/** A look-up and a reset find everything of a recipient, for every scene, also after later sends. */
import { expect, test } from 'vitest'
import { startPostern } from '../tools/postern.ts'

const testNumber = '+15005550006'
const postern = await startPostern({
  policyFile: {
    browser: { rules: [] },
    policies: {
      captcha: [{ name: 'scene', key: '{app}:{to}:{scene}', sliding: '1 per 1h' }],
      notice: [],
      check: [
        {
          name: 'watched',
          key: '{app}:{to}',
          lockout: { limit: 1, window: '5m', lock: '1h' },
          mode: 'observe',
        },
      ],
    },
    testing: { recipients: [{ to: testNumber, code: '4071' }], until: '2099-12-31' },
  },
})

const send = (to: string, scene: string) =>
  postern.post('/v1/captchas', { channel: 'sms', to, scene })
const check = (to: string, scene: string, code: string) =>
  postern.post('/v1/captchas/check', { channel: 'sms', to, scene, code })
const lookUp = async (to: string) =>
  (await postern.post('/v1/recipients/lookup', { channel: 'sms', to })).body
const reset = (to: string, what: string[]) =>
  postern.post('/v1/recipients/reset', { channel: 'sms', to, what, reason: 'stolen phone' })

/** More than a look-up shows. */
async function sendNotices(to: string): Promise<void> {
  for (let sent = 0; sent < 21; sent++) {
    const params = { name: `Ada ${sent}` }
    const notice = { channel: 'sms', to, template: 'welcome', params }
    expect((await postern.post('/v1/notices', notice)).status).toBe(202)
  }
}

test('a code with 21 later notices is listed, and ended', async () => {
  const to = '+8613800300001'
  const { body } = await send(to, 'login')
  const code = await postern.codeFor(body.id)
  await sendNotices(to)
  expect((await lookUp(to)).codes).toMatchObject([{ scene: 'login', triesLeft: 3 }])
  expect((await reset(to, ['code'])).status).toBe(204)
  expect((await lookUp(to)).codes).toEqual([])
  expect((await check(to, 'login', code)).body.code).toBe('code_gone')
})

test('codes of more scenes than a look-up shows are all ended', async () => {
  const to = '+8613800300002'
  const scenes = Array.from({ length: 25 }, (_, nth) => `scene-${nth}`)
  const codes = new Map<string, string>()
  for (const scene of scenes) {
    codes.set(scene, await postern.codeFor((await send(to, scene)).body.id))
  }
  expect((await lookUp(to)).codes).toHaveLength(20)
  await reset(to, ['code'])
  for (const [scene, code] of codes) {
    expect((await check(to, scene, code)).body.code).toBe('code_gone')
  }
})

test('the code of a test recipient, in any scene', async () => {
  await send(testNumber, 'signup')
  expect((await lookUp(testNumber)).codes).toMatchObject([{ scene: 'signup' }])
  await reset(testNumber, ['code'])
  expect((await check(testNumber, 'signup', '4071')).body.code).toBe('code_gone')
})

test('the count of a scene that 21 notices came after', async () => {
  const to = '+8613800300003'
  await send(to, 'login')
  await sendNotices(to)
  // The code of a send without a scene, and no codes of the scenes of others.
  expect((await lookUp(to)).limits.slice(0, -1)).toMatchObject([
    { rule: 'scene', used: 0 },
    { rule: 'scene', used: 1, limit: 1 },
  ])
  await reset(to, ['limits'])
  expect((await send(to, 'login')).status).toBe(202)
})

test('the lock of an observed rule is only counted: a person above its limit can go on', async () => {
  const to = '+8613800300004'
  const code = await postern.codeFor((await send(to, 'login')).body.id)
  const wrong = code === '0000' ? '0001' : '0000'
  for (let tries = 0; tries < 3; tries++) await check(to, 'login', wrong)
  const { limits, lockedForMs } = await lookUp(to)
  expect(limits.at(-1)).toEqual({
    ...{ policy: 'check', rule: 'watched', window: '5m', limit: 1 },
    ...{ used: expect.any(Number), resetsInMs: expect.any(Number) },
  })
  expect(lockedForMs).toBeUndefined()
})
