import { describe, expect, test } from 'vitest'
import { noLimits, type Postern, startPostern } from '../tools/postern.ts'
import { eventually } from '../tools/wait.ts'
import { freshPhone, noticeBody, rowOf, untilFinal } from './notices.ts'

const outcomesOf = (row: { attempts: { provider: string; outcome: string }[] }) =>
  row.attempts.map(({ provider, outcome }) => `${provider} ${outcome}`)

function postern(provider: object, delivery: object = {}): Promise<Postern> {
  return startPostern({
    policyFile: {
      policies: noLimits,
      delivery,
      providers: { phone: { kind: 'sandbox', ...provider }, spare: { kind: 'sandbox' } },
      routes: { sms: [{ use: ['phone', 'spare'] }] },
    },
  })
}

async function sendOne(to: Postern, path = '/v1/notices', body?: object): Promise<string> {
  const reply = await to.post(path, body ?? noticeBody('sms', freshPhone()))
  expect(reply.status).toBe(202)
  return reply.body.id
}

const lostAnswer = { faults: [{ result: 'lost_answer' }] }

describe('an answer lost after the hand-over (F18)', () => {
  test('a provider that can be asked: sent, once, and the row has how that is known', async () => {
    const to = await postern({ ...lostAnswer, query: true })
    const id = await sendOne(to)
    await untilFinal(to, [id])
    const row = await rowOf(to, id)
    expect(row).toMatchObject({ state: 'sent', provider: 'phone' })
    expect(outcomesOf(row)).toEqual(['phone unknown', 'phone accepted'])
    expect(await to.messages()).toMatchObject([{ id: row.provider_message_id, noticeId: id }])
  })

  test('a captcha and a provider that cannot be asked: one repeat, then failed', async () => {
    const to = await postern({ ...lostAnswer, query: false }, { unknownRetries: 5 })
    const id = await sendOne(to, '/v1/captchas', { channel: 'sms', to: freshPhone() })
    await untilFinal(to, [id])
    const row = await rowOf(to, id)
    expect(row).toMatchObject({ state: 'failed', error: 'outcome_unknown' })
    expect(await to.messages()).toHaveLength(2)
  })

  test.for([
    ['unknownRetries 0', 0],
    ['unknownRetries 2', 2],
  ] as const)('a notice, %s: sent once and so many times more', async ([, unknownRetries]) => {
    const to = await postern({ ...lostAnswer, query: false }, { unknownRetries })
    const id = await sendOne(to)
    await untilFinal(to, [id])
    expect(await rowOf(to, id)).toMatchObject({ state: 'failed', error: 'outcome_unknown' })
    expect(await to.messages()).toHaveLength(1 + unknownRetries)
  })

  test('an early receipt settles it where the provider cannot be asked: sent, then delivered, once', async () => {
    const receipts = { outcome: 'delivered', delay: '100ms' }
    const to = await postern({ query: false, faults: [{ result: 'lost_answer', receipts }] })
    const id = await sendOne(to)
    await eventually(async () => (await rowOf(to, id)).state === 'delivered')
    const row = await rowOf(to, id)
    expect(outcomesOf(row)).toEqual(['phone unknown', 'phone accepted'])
    expect(await to.messages()).toHaveLength(1)
  })
})

test('a provider that hangs past the time of the notice: the call ends with it, and nothing is sent after it (I7, F15)', async () => {
  const to = await startPostern({
    policyFile: {
      policies: noLimits,
      delivery: { timeout: '15s' },
      providers: { phone: { kind: 'sandbox', faults: [{ result: 'hang' }] } },
      routes: { sms: [{ use: ['phone'] }] },
    },
  })
  // On a busy machine, a notice can end before its first call.
  const row = await eventually(async () => {
    const id = await sendOne(to, '/v1/notices', { ...noticeBody('sms', freshPhone()), ttl: '1s' })
    await untilFinal(to, [id])
    const called = await rowOf(to, id)
    expect(called.attempts).toHaveLength(1)
    return called
  })
  expect(row).toMatchObject({ state: 'expired', error: 'provider_away' })
  // Without the time limit the call would take 15 s.
  expect(row.attempts[0].durationMs).toBeLessThan(14_000)
  expect(await to.messages()).toHaveLength(0)
})

test('in-process receipts take the same way: late, double ones end delivered once', async () => {
  const to = await postern({ receipts: { outcome: 'delivered', delay: '50ms', copies: 3 } })
  const id = await sendOne(to)
  await eventually(async () => (await rowOf(to, id)).state === 'delivered')
  await eventually(async () => {
    const metrics = await (await fetch(`${to.adminUrl}/metrics`)).text()
    const counted = (result: string) =>
      new RegExp(`^postern_receipts_total\\{[^}]*result="${result}"[^}]*\\} (\\d+)$`, 'm').exec(
        metrics,
      )?.[1]
    expect([counted('delivered'), counted('repeated')]).toEqual(['1', '2'])
  })
  expect((await rowOf(to, id)).state).toBe('delivered')
})
