import { randomInt } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { noLimits, startPostern } from '../tools/postern.ts'
import { eventually } from '../tools/wait.ts'
import { openApiAnswers } from './openapi-answers.ts'

const postern = await startPostern({
  policyFile: {
    policies: {
      captcha: [
        { name: 'recipient', key: '{channel}:{to}', sliding: ['1 per 2s', '5 per 1h'] },
        {
          name: 'never',
          key: '{template}:{scene}',
          sliding: '1000 per 1h',
          message: 'Bitte warten.',
        },
      ],
      notice: [{ name: 'closed', key: '{template}', fixed: '0 per 60s' }],
      check: [
        {
          name: 'guesses',
          key: '{channel}:{to}:{ip}',
          lockout: { limit: 2, window: '5m', lock: '15m' },
        },
      ],
    },
  },
})
const { expectPromised } = await openApiAnswers(postern)
const send = (to: string) => postern.post('/v1/captchas', { channel: 'sms', to })
describe('limited', () => {
  test('200 sends at once to one number: one 202, 199 × 429, one message (I3)', async () => {
    // The default rules, whose windows are longer than any run of this test.
    const byDefault = await startPostern()
    const to = '+8613800138000'
    // A busy machine answers some of them 503, which changes nothing.
    const sendOne = () =>
      eventually(async () => {
        const reply = await byDefault.post('/v1/captchas', { channel: 'sms', to })
        return reply.status !== 503 && reply
      })
    const replies = await Promise.all(Array.from({ length: 200 }, sendOne))
    expect(replies.map(({ status }) => status).sort()).toEqual([202, ...Array(199).fill(429)])
    await byDefault.codeFor(to)
    expect(await byDefault.messages(to)).toHaveLength(1)
    const { rows } = await byDefault.database.pool.query(
      'SELECT count(*)::int AS count FROM notice',
    )
    expect(rows).toEqual([{ count: 1 }])
  })

  test('429 names policy, rule, window and the wait; the headers have the same in whole seconds', async () => {
    const to = '+8613900139000'
    // On a busy machine, the window of 2 s can end between the two.
    const refused = await eventually(async () => {
      await send(to)
      const second = await send(to)
      expect(second.status).toBe(429)
      return second
    })
    expectPromised('post /v1/captchas', refused)
    expect(refused.body).toMatchObject({
      code: 'limited',
      policy: 'captcha',
      rule: 'recipient',
      window: '2s',
      retryAfterMs: expect.any(Number),
    })
    expect(refused.body.retryAfterMs).toBeGreaterThan(0)
    expect(refused.body.retryAfterMs).toBeLessThanOrEqual(2_000)
    const seconds = Math.ceil(refused.body.retryAfterMs / 1_000)
    expect(refused.headers.get('retry-after')).toBe(String(seconds))
    expect(refused.headers.get('ratelimit')).toMatch(
      new RegExp(`^"[^"]*recipient[^"]*2s";r=0;t=${seconds}$`),
    )
    expect(refused.headers.get('ratelimit-policy')).toMatch(/"[^"]*recipient[^"]*2s";q=1;w=2/)
    expect(refused.body.detail).toBe(
      `Too many requests. Try again in ${seconds} second${seconds === 1 ? '' : 's'}.`,
    )
  })

  test('resendAt is when the same request is admitted again, not before', async () => {
    const to = '+8615800158000'
    const windowMs = 2_000
    const askedAtMs = Date.now()
    const { body } = await send(to)
    const answeredAtMs = Date.now()
    const resendAtMs = Date.parse(body.resendAt)
    expect(resendAtMs).toBeGreaterThanOrEqual(askedAtMs + windowMs)
    expect(resendAtMs).toBeLessThanOrEqual(answeredAtMs + windowMs)
    let refusedAtMs = 0
    const admittedAtMs = await eventually(async () => {
      const sentAtMs = Date.now()
      const { status } = await send(to)
      if (status !== 202) refusedAtMs = sentAtMs
      return status === 202 && Date.now()
    })
    expect(refusedAtMs).toBeLessThan(resendAtMs)
    expect(admittedAtMs).toBeGreaterThanOrEqual(askedAtMs + windowMs)
  })

  test('a limit of 0 refuses always, with a wait that is a number', async () => {
    const body = {
      channel: 'sms',
      to: '+8613800138000',
      template: 'welcome',
      params: { name: 'x' },
    }
    const refused = await postern.post('/v1/notices', body)
    expectPromised('post /v1/notices', refused)
    expect(refused).toMatchObject({ status: 429, body: { code: 'limited', rule: 'closed' } })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  })
})

describe('locked', () => {
  test('guesses over the budget are locked, also after a new code; the lock is per recipient', async () => {
    const [to, other] = ['+8618600186000', '+8618700187000']
    await send(to)
    const code = await postern.codeFor(to)
    const wrong = (by: number) => String((Number(code) + by) % 10_000).padStart(4, '0')
    const check = (body: object) => postern.post('/v1/captchas/check', { channel: 'sms', ...body })
    expect((await check({ to, code: wrong(1) })).status).toBe(422)
    expect((await check({ to, code: wrong(2) })).status).toBe(422)
    const locked = await check({ to, code })
    expectPromised('post /v1/captchas/check', locked)
    expect(locked).toMatchObject({
      status: 429,
      body: { code: 'locked', policy: 'check', rule: 'guesses', retryAfterMs: expect.any(Number) },
    })
    expect(locked.body).not.toHaveProperty('window')
    expect(Number(locked.headers.get('retry-after'))).toBeGreaterThan(890)
    expect((await check({ to: other, code: '0000' })).status).toBe(410)
  })

  test('a right code clears the misses before it', async () => {
    const to = '+8618800188000'
    await send(to)
    const code = await postern.codeFor(to)
    const check = (guess: string) =>
      postern.post('/v1/captchas/check', { channel: 'sms', to, code: guess })
    expect((await check(String((Number(code) + 1) % 10_000).padStart(4, '0'))).status).toBe(422)
    expect((await check(code)).status).toBe(200)
    expect((await check('0000')).status).toBe(410)
    expect((await check('0000')).status).toBe(410)
  })
})

describe('ip', () => {
  test('limits count the address in the body; without it, the caller’s', async () => {
    const postern = await startPostern({
      policyFile: {
        policies: {
          ...noLimits,
          captcha: [{ name: 'ip', key: '{ip}', sliding: '1 per 60s' }],
          check: [{ name: 'ip', key: '{ip}', sliding: '1 per 60s' }],
        },
      },
    })
    const statusOf = async (ip?: string) => {
      const body = { channel: 'sms', to: `+86139${randomInt(1e7, 1e8)}`, ...(ip ? { ip } : {}) }
      const sent = await postern.post('/v1/captchas', body)
      if (sent.status !== 202) return [sent.status]
      const code = await postern.codeFor(sent.body.id)
      const checked = await postern.post('/v1/captchas/check', { ...body, code })
      return [sent.status, checked.status]
    }
    expect(await statusOf('203.0.113.7')).toEqual([202, 200])
    expect(await statusOf('::ffff:203.0.113.7')).toEqual([429])
    expect(await statusOf('203.0.113.8')).toEqual([202, 200])
    expect(await statusOf()).toEqual([202, 200])
    expect(await statusOf()).toEqual([429])
    expect(await statusOf('not an address')).toEqual([400])
  })
})
