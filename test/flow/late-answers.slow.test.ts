/** A far end may answer after the time limit of the hand-over. The message then goes out once, and is `sent`. */
import { expect, test } from 'vitest'
import { startFarEnd } from '../tools/far-end.ts'
import { noLimits, startPostern } from '../tools/postern.ts'
import { startSmtp } from '../tools/smtp.ts'
import { eventually } from '../tools/wait.ts'

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

test('answers of a webhook after 8 s and of a mail server after 12 s → one message each, sent', async () => {
  const farEnd = await startFarEnd()
  farEnd.behave = async () => {
    await wait(8_000)
    return { status: 200 }
  }
  let mails = 0
  const { url } = await startSmtp({
    onData(stream, _session, done) {
      stream.resume()
      stream.on('end', () => {
        mails += 1
        setTimeout(done, 12_000)
      })
    },
  })
  const postern = await startPostern({
    policyFile: {
      policies: noLimits,
      providers: {
        hook: { kind: 'webhook', url: farEnd.url, secret: 'a-secret-of-16-or-more' },
        mail: { kind: 'smtp', url, from: 'Acme <no-reply@acme.test>' },
      },
      routes: { sms: [{ use: ['hook'] }], email: [{ use: ['mail'] }] },
    },
  })
  const sent = await Promise.all([
    postern.post('/v1/captchas', { channel: 'sms', to: '+8613800138000' }),
    postern.post('/v1/captchas', { channel: 'email', to: 'ada@example.test' }),
  ])
  for (const { status, body } of sent) {
    expect(status).toBe(202)
    const notice = await eventually(
      async () => {
        const { body: read } = await postern.get(`/v1/notices/${body.id}`)
        return read.state !== 'pending' && read.state !== 'sending' && read
      },
      { withinMs: 40_000 },
    )
    expect(notice).toMatchObject({ state: 'sent', attempts: [{ outcome: 'accepted' }] })
  }
  expect([...farEnd.taken.values()]).toEqual([1])
  expect(mails).toBe(1)
}, 90_000)
