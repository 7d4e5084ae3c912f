import { expect, test } from 'vitest'
import { noLimits, startPostern } from '../tools/postern.ts'
import { eventually } from '../tools/wait.ts'
import { freshEmail, freshPhone, noticeBody, rowOf, untilFinal } from './notices.ts'

test('throttled: the provider is left alone for its time, no try is used, then all are sent (F17)', async () => {
  const slow = freshPhone()
  const postern = await startPostern({
    policyFile: {
      policies: noLimits,
      providers: {
        phone: {
          kind: 'sandbox',
          faults: [{ to: slow, result: 'throttled', retryAfter: '1500ms' }],
        },
      },
      routes: { sms: [{ use: ['phone'] }] },
    },
  })
  const throttled = await postern.post('/v1/notices', noticeBody('sms', slow))
  const attempt = await eventually(async () => {
    const [first] = (await rowOf(postern, throttled.body.id)).attempts
    expect(first.outcome).toBe('throttled')
    return first
  })
  const { body } = await postern.post('/v1/notices', noticeBody('sms', freshPhone()))
  await untilFinal(postern, [body.id])
  const row = await rowOf(postern, body.id)
  expect(row.attempts.map(({ outcome }: { outcome: string }) => outcome)).toEqual(['accepted'])
  expect(row.sent_at - Date.parse(attempt.at)).toBeGreaterThan(1_400)
})

test("quotas 1 per 60s: the second message to a number goes to the next provider, others' do not", async () => {
  const postern = await startPostern({
    policyFile: {
      policies: noLimits,
      providers: {
        capped: { kind: 'sandbox', quotas: ['1 per 60s', '5 per 1h'] },
        spare: { kind: 'sandbox' },
      },
      routes: { sms: [{ use: ['capped', 'spare'] }] },
    },
  })
  const [one, other] = [freshPhone(), freshPhone()]
  const providers: string[] = []
  for (const to of [one, one, other]) {
    const { body } = await postern.post('/v1/notices', noticeBody('sms', to))
    await untilFinal(postern, [body.id])
    providers.push((await rowOf(postern, body.id)).provider)
  }
  expect(providers).toEqual(['capped', 'spare', 'capped'])
})

test('a send that was surely not taken gives its quota back', async () => {
  const to = freshPhone()
  const postern = await startPostern({
    policyFile: {
      policies: noLimits,
      providers: {
        capped: {
          kind: 'sandbox',
          quotas: '1 per 60s',
          faults: [{ to, share: 1, result: 'unavailable' }],
        },
      },
      routes: { sms: [{ use: ['capped'] }] },
    },
  })
  const { body } = await postern.post('/v1/notices', noticeBody('sms', to))
  // If the first call had kept its quota, there would be no second call within a minute.
  await eventually(async () => {
    const { attempts } = await rowOf(postern, body.id)
    expect(attempts).toMatchObject([{ outcome: 'unavailable' }])
    expect(attempts[0].count).toBeGreaterThanOrEqual(3)
  })
})

test('slow mail does not delay SMS, and a code overtakes bulk that waits', async () => {
  const policyFile = {
    policies: noLimits,
    delivery: { concurrency: 4 },
    providers: {
      phone: { kind: 'sandbox', faults: [{ to: '+86139*', delay: '1s' }] },
      mail: { kind: 'sandbox', faults: [{ delay: '1s' }] },
    },
    routes: { sms: [{ use: ['phone'] }], email: [{ use: ['mail'] }] },
  }
  const postern = await startPostern({ policyFile })
  const post = (path: string, body: unknown) => postern.post(path, body)
  const slow = await Promise.all(
    Array.from({ length: 60 }, () => post('/v1/notices', noticeBody('email', freshEmail()))),
  )
  const bulk = await Promise.all(
    Array.from({ length: 80 }, () => post('/v1/notices', noticeBody('sms', freshPhone('+86139')))),
  )
  const code = await post('/v1/captchas', { channel: 'sms', to: freshPhone('+86137') })
  await untilFinal(postern, [code.body.id])
  const open = async (replies: typeof bulk) => {
    const { rows } = await postern.database.pool.query(
      'SELECT count(*)::int AS n FROM notice WHERE id = ANY($1::uuid[]) AND due_at IS NOT NULL',
      [replies.map(({ body }) => body.id)],
    )
    return rows[0].n as number
  }
  const [mailsLeft, bulkLeft] = [await open(slow), await open(bulk)]
  console.log(
    `when the code was sent, ${bulkLeft} of 80 bulk SMS and ${mailsLeft} of 60 mails were not`,
  )
  expect(bulkLeft).toBeGreaterThan(40)
  expect(mailsLeft).toBeGreaterThan(0)
})
