import { expect, test } from 'vitest'
import { newPhone, otherThan } from '../tools/people.ts'
import { noLimits, startPostern } from '../tools/postern.ts'
import { startTcpProxy } from '../tools/tcp-proxy.ts'
import { eventually } from '../tools/wait.ts'

const policies = {
  captcha: [],
  notice: [],
  check: [
    { name: 'address', key: '{ip}', lockout: { limit: 10, window: '1h', lock: '1h' } },
    { name: 'guesses', key: '{channel}:{to}', lockout: { limit: 3, window: '1h', lock: '1h' } },
    { name: 'all', key: '{channel}:{to}', sliding: '5 per 1h' },
  ],
}
const postern = await startPostern({ policyFile: { policies } })

let people = 0
function newAddress(): string {
  people += 1
  return `2001:db8:0:${people.toString(16)}::1`
}

async function sendTo(to: string): Promise<string> {
  const { body } = await postern.post('/v1/captchas', { channel: 'sms', to })
  return postern.codeFor(body.id)
}
const check = (to: string, code: string, ip: string) =>
  postern.post('/v1/captchas/check', { channel: 'sms', to, code, ip })

test('a pass with a number of one’s own wins back no guess at the numbers of others: of 40 from one address 10 are compared', async () => {
  const [own, ip] = [newPhone(), newAddress()]
  let compared = 0
  for (let guess = 0; guess < 40; guess++) {
    // A new number for each guess, so that only the address can be limited.
    const other = newPhone()
    await postern.post('/v1/captchas', { channel: 'sms', to: other })
    const { status } = await check(other, '0000', ip)
    // One of 10,000 guesses is right.
    if (status !== 429) compared++
    const pass = await check(own, await sendTo(own), ip)
    expect([200, 429]).toContain(pass.status)
  }
  expect(compared).toBe(10)
})

test('people who share an address and type their codes right are not locked out, however many they are', async () => {
  const ip = newAddress()
  for (let person = 0; person < 30; person++) {
    const to = newPhone()
    expect((await check(to, await sendTo(to), ip)).status).toBe(200)
  }
})

test('a pass forgives the misses at its recipient, and a rule that is no lockout counts it like any use', async () => {
  const to = newPhone()
  const guess = (code: string) => check(to, code, newAddress())
  const first = await sendTo(to)
  for (const wrong of [1, 2]) {
    expect((await guess(otherThan(first))).status, `wrong guess ${wrong}`).toBe(422)
  }
  expect((await guess(first)).status).toBe(200)
  const second = await sendTo(to)
  // Two more would lock, if the first two had not been forgiven.
  expect((await guess(otherThan(second))).status).toBe(422)
  expect((await guess(otherThan(second))).status).toBe(422)
  // Five checks of this number in an hour, including the check that passed.
  expect(await guess(second)).toMatchObject({ status: 429, body: { rule: 'all' } })
})

test('Redis stands still under forty right checks: every one that is 503 passes afterwards (I23)', async () => {
  const proxy = await startTcpProxy(Number(new URL(postern.redis.url).port))
  const api = await startPostern({
    on: postern,
    roles: { api: true, worker: false },
    env: { REDIS_URL: proxy.through(postern.redis.url), BOOTSTRAP_SECRET_KEY: postern.key },
    // Without limits, the guess is the first command that Redis gets.
    policyFile: { policies: noLimits },
  })
  const codes: { to: string; code: string }[] = []
  while (codes.length < 40) {
    const to = newPhone()
    codes.push({ to, code: await sendTo(to) })
  }
  const statusOf = async (one: (typeof codes)[number]) =>
    (await api.post('/v1/captchas/check', { channel: 'sms', ...one })).status
  // Connected, and Redis knows the script.
  await eventually(async () => expect(await statusOf({ to: newPhone(), code: '0000' })).toBe(410))

  const answers = codes.map(statusOf)
  proxy.stall()
  const statuses = await Promise.all(answers)
  const unheard = codes.filter((_, index) => statuses[index] === 503)
  expect(unheard.length).toBeGreaterThan(0)
  // The commands reach Redis now, long after their callers have got 503.
  proxy.forward()
  await Promise.all(
    unheard.map((one) =>
      eventually(async () => expect(await statusOf(one)).toBe(200), { everyMs: 500 }),
    ),
  )
})
