/** `refund: passed`: the uses of a send are given back when its code passes. */
import { expect, test } from 'vitest'
import { newPhone } from '../tools/people.ts'
import { startPostern } from '../tools/postern.ts'
import { publishableKey } from '../tools/publishable-key.ts'
import { eventually } from '../tools/wait.ts'

const unverified = { name: 'unverified', key: '{country}', sliding: '3 per 24h', refund: 'passed' }
const all = { name: 'all', key: '{app}', sliding: '20 per 24h' }

async function open(captcha: readonly object[], more: object = {}) {
  const policies = { captcha, notice: [], check: [] }
  const postern = await startPostern({ policyFile: { policies, ...more } })
  const send = (to: string, key = postern.key) =>
    postern.post('/v1/captchas', { channel: 'sms', to }, { key })
  const check = (to: string, code: string, key = postern.key) =>
    postern.post('/v1/captchas/check', { channel: 'sms', to, code }, { key })
  /** Sends as soon as the limits admit it, and passes. */
  async function signIn(key = postern.key): Promise<void> {
    const to = newPhone()
    const sent = await eventually(async () => {
      const reply = await send(to, key)
      return reply.status === 202 && reply.body
    })
    expect((await check(to, await postern.codeFor(sent.id), key)).status).toBe(200)
  }
  return { postern, send, check, signIn }
}

test('people who pass take nothing for long: ten sign in where three may stay unverified, and other rules keep count', async () => {
  const { send, signIn } = await open([unverified, { ...all, sliding: '12 per 24h' }])
  for (let person = 0; person < 10; person++) await signIn()
  await eventually(async () => expect((await send(newPhone())).status).toBe(202))
  await eventually(async () => expect((await send(newPhone())).status).toBe(202))
  expect(await send(newPhone())).toMatchObject({ status: 429, body: { rule: 'all' } })
})

test('people who never pass, and wrong codes, give nothing back', async () => {
  const { postern, send, check } = await open([unverified])
  for (let sent = 0; sent < 3; sent++) {
    const to = newPhone()
    const { body } = await send(to)
    expect(body.state).toBe('pending')
    const code = await postern.codeFor(body.id)
    expect((await check(to, code === '0000' ? '0001' : '0000')).status).toBe(422)
  }
  expect(await send(newPhone())).toMatchObject({ status: 429, body: { rule: 'unverified' } })
})

test('rules for pages are given back too', async () => {
  const { postern, signIn } = await open([], { browser: { rules: [unverified] } })
  const key = await publishableKey(postern.database)
  for (let person = 0; person < 8; person++) await signIn(key)
})

test('of a send that was replaced nothing comes back: only the code that passes was verified', async () => {
  const { postern, send, check } = await open([unverified])
  const to = newPhone()
  await send(to)
  const { body } = await send(to)
  expect((await check(to, await postern.codeFor(body.id))).status).toBe(200)
  await eventually(async () => expect((await send(newPhone())).status).toBe(202))
  await eventually(async () => expect((await send(newPhone())).status).toBe(202))
  expect((await send(newPhone())).status).toBe(429)
})

test('the stored data is sealed, and lives as long as the code may pass', async () => {
  const { postern, send } = await open([unverified], { code: { ttl: '30m' } })
  const to = newPhone()
  await send(to)
  const { client, prefix } = postern.redis
  const keys = await client.keys(`${prefix}*`)
  const codes = keys.filter((key) => key.includes('code:'))
  expect(codes).toHaveLength(1)
  const stored = (await client.get(codes[0] as string)) ?? ''
  expect(stored).toContain('onPass')
  expect(Buffer.from(JSON.parse(stored)[0].onPass, 'base64').toString('latin1')).not.toMatch(
    /8613800|captcha|price/,
  )
  const memories = keys.filter((key) => key.includes('req'))
  expect(memories).toHaveLength(1)
  expect(await client.pttl(memories[0] as string)).toBeGreaterThan(1_800_000)
})

test('without such a rule nothing is kept', async () => {
  const { postern, send } = await open([all])
  await send(newPhone())
  const { client, prefix } = postern.redis
  const [key = ''] = (await client.keys(`${prefix}*`)).filter((one) => one.includes('code:'))
  expect(await client.get(key)).not.toContain('onPass')
})
