/** A mail server whose content scanner is down answers 451 to every mail, as if each recipient were at fault. */
import { expect, test } from 'vitest'
import { noLimits, startPostern } from '../tools/postern.ts'
import { startSmtp } from '../tools/smtp.ts'
import { eventually } from '../tools/wait.ts'

const from = 'Acme <no-reply@acme.test>'

test('451 without an enhanced code to every mail → each goes to the next provider; the gauge of the alert is 1 until mails are accepted', async () => {
  let isDown = true
  const scanner = await startSmtp({
    hideENHANCEDSTATUSCODES: true,
    onData(stream, _session, done) {
      stream.resume()
      stream.on('end', () => {
        const temporary = Object.assign(new Error('Temporary local problem'), { responseCode: 451 })
        done(isDown ? temporary : null)
      })
    },
  })
  const next = await startSmtp()
  const postern = await startPostern({
    policyFile: {
      policies: noLimits,
      providers: {
        scanner: { kind: 'smtp', url: scanner.url, from },
        next: { kind: 'smtp', url: next.url, from },
      },
      routes: { sms: [], email: [{ use: ['scanner', 'next'] }] },
    },
  })
  let user = 0
  const send = async (mails: number) => {
    for (let mail = 0; mail < mails; mail++) {
      const to = `user${user++}@example.test`
      await postern.post('/v1/captchas', { channel: 'email', to })
    }
  }
  const gauges = async () => {
    const text = await (await fetch(`${postern.adminUrl}/metrics`)).text()
    const values = text.matchAll(/^postern_provider_postponing\{provider="(\w+)".*\} (\d)$/gm)
    return Object.fromEntries([...values].map(([, name, value]) => [name, value]))
  }
  expect(await gauges()).toEqual({ scanner: '0', next: '0' })
  await send(25)
  await eventually(() => next.mails.length === 25)
  expect(await gauges()).toEqual({ scanner: '1', next: '0' })
  isDown = false
  await send(3)
  await eventually(async () => expect(await gauges()).toEqual({ scanner: '0', next: '0' }))
  expect(next.mails).toHaveLength(25)
})
