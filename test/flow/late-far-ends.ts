/** Far ends that take a message at once and answer late, each with a reserve that must not be asked. */
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { startFarEnd } from '../tools/far-end.ts'
import { listen } from '../tools/listen.ts'
import { noLimits, type Postern, startPostern } from '../tools/postern.ts'
import { startSmtp } from '../tools/smtp.ts'
import { eventually } from '../tools/wait.ts'

interface Delays {
  readonly timeout: string
  readonly httpMs: number
  /** One mail for each. */
  readonly mailMs: readonly number[]
}

export async function expectOneMessageEach({ timeout, httpMs, mailMs }: Delays): Promise<void> {
  const calls: string[] = []
  const hook = await startFarEnd()
  hook.behave = async () => {
    calls.push('hook')
    await sleep(httpMs)
    return { status: 200 }
  }
  const twilio = await listen(
    createServer((request, response) => {
      calls.push('twilio')
      request.resume()
      setTimeout(() => {
        response.writeHead(201, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ sid: 'SM1', status: 'queued' }))
      }, httpMs)
    }),
  )
  const mail = await startSmtp({
    onData(stream, session, done) {
      stream.resume()
      stream.on('end', () => {
        calls.push('mail')
        setTimeout(done, Number.parseInt(session.envelope.rcptTo[0]?.address ?? '', 10))
      })
    },
  })
  const [reserve, reserveMail] = [await startFarEnd(), await startSmtp()]
  const secret = 'a-secret-of-16-or-more'
  const from = 'Acme <no-reply@acme.test>'
  const postern = await startPostern({
    policyFile: {
      policies: noLimits,
      delivery: { timeout },
      providers: {
        hook: { kind: 'webhook', url: hook.url, secret },
        twilio: {
          kind: 'twilio',
          ...{ accountSid: `AC${'0'.repeat(32)}`, authToken: 'a-token', from: '+15005550006' },
          endpoint: twilio,
        },
        mail: { kind: 'smtp', url: mail.url, from },
        reserve: { kind: 'webhook', url: reserve.url, secret },
        'reserve-mail': { kind: 'smtp', url: reserveMail.url, from },
      },
      routes: {
        sms: [
          { match: { country: ['GB'] }, use: ['twilio', 'reserve'] },
          { use: ['hook', 'reserve'] },
        ],
        email: [{ use: ['mail', 'reserve-mail'] }],
      },
    },
  })
  const sent = await Promise.all([
    postern.post('/v1/captchas', { channel: 'sms', to: '+8613800138000' }),
    postern.post('/v1/captchas', { channel: 'sms', to: '+447400123456' }),
    ...mailMs.map((ms) =>
      postern.post('/v1/captchas', { channel: 'email', to: `${ms}ms@example.test` }),
    ),
  ])
  expect(sent.map(({ status }) => status)).toEqual(sent.map(() => 202))
  const notices = await Promise.all(sent.map(({ body }) => ended(postern, body.id)))
  for (const notice of notices) {
    expect(notice).toMatchObject({ state: 'sent', attempts: [{ outcome: 'accepted' }] })
  }
  expect(calls.toSorted()).toEqual(['hook', ...mailMs.map(() => 'mail'), 'twilio'])
  expect([reserve.calls.size, reserveMail.mails.length]).toEqual([0, 0])
}

export const ended = (postern: Postern, id: string) =>
  eventually(
    async () => {
      const { body } = await postern.get(`/v1/notices/${id}`)
      return body.state !== 'pending' && body.state !== 'sending' && body
    },
    { withinMs: 60_000 },
  )
