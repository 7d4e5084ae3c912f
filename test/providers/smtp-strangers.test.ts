import { describe, expect, it } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import {
  type Misbehaviour,
  type Protocol,
  smtp as protocol,
  startMisbehavingServer,
} from '../tools/misbehaving-server.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'
import smtp, * as given from './cases/smtp.ts'

async function sendTo(protocol: Protocol, misbehaviour: Misbehaviour, timeoutMs = 60_000) {
  const server = await startMisbehavingServer(protocol, misbehaviour)
  const settings = smtp.settings.parse({ url: `smtp://127.0.0.1:${server.port}`, from: given.from })
  const provider = smtp.create('mail', settings, { timeoutMs, concurrency: 100, clock: Date.now })
  releaseLater(() => provider.close())
  const message = { ...given.conformance.message, noticeId: newId() }
  const result = await provider.send(message, new AbortController().signal)
  return { server, result }
}

/** A good server, but for its answer to one command. */
const answering = (command: string, reply: string, greeting = protocol.greeting): Protocol => ({
  ...protocol,
  greeting,
  answer(request) {
    const text = request.toString('latin1')
    if (!text.endsWith('\r\n')) return undefined
    if (text.startsWith(command)) return Buffer.from(reply)
    return Buffer.from(text.startsWith('DATA') ? '354 go on\r\n' : '250 OK\r\n')
  },
})

describe('a mail server that misbehaves', () => {
  it.each<[Misbehaviour, string]>([
    ['half closes', 'SMTP connection lost'],
    ['never reads', 'SMTP no answer in time'],
    ['lies about the length', 'SMTP no answer in time'],
  ])('%s → unavailable: %s', async (misbehaviour, detail) => {
    const { server, result } = await sendTo(protocol, misbehaviour, 1_500)
    expect(result).toMatchObject({ kind: 'unavailable', detail })
    if (misbehaviour === 'never reads') return
    await eventually(() => server.connections.open === 0)
  })

  const blank = Buffer.from('\r\n')
  it.each<[string, Misbehaviour, Protocol]>([
    ['a reply without end', 'endless', protocol],
    ['three replies to one command', 'sends more than it announces', protocol],
    ['blank lines without end in place of a reply', 'crumbs', protocol],
    ['positive replies without end, before any command', 'floods', protocol],
    ['blank lines without end, before any command', 'floods', { ...protocol, floods: [blank] }],
    [
      'blank lines without end in place of the greeting',
      'floods',
      { ...protocol, greeting: undefined, floods: [blank] },
    ],
    [
      'a reply ahead of the first command',
      'slow',
      answering('-', '', Buffer.from('220 a\r\n250 b\r\n')),
    ],
    [
      'a positive reply to DATA, as to the command before it',
      'slow',
      answering('DATA', '250 OK\r\n'),
    ],
  ])(
    '%s → unavailable long before its time limit, after few bytes',
    async (_, misbehaviour, from) => {
      const { server, result } = await sendTo(from, misbehaviour)
      expect(result).toEqual({ kind: 'unavailable', detail: 'SMTP answer not understood' })
      await eventually(() => server.connections.open === 0)
      // The rest waits in the sockets of this machine.
      expect(server.bytesSent()).toBeLessThan(16_000_000)
    },
  )

  it('a positive reply that came together with the go-ahead, so before the message → not accepted', async () => {
    const server = answering('DATA', '354 go on\r\n250 OK\r\n')
    const { result } = await sendTo(server, 'at once')
    expect(result).toEqual({ kind: 'unavailable', detail: 'SMTP answer not understood' })
  })

  it('a good answer to each command, one byte at a time → accepted', async () => {
    const { result } = await sendTo(answering('-', ''), 'slow')
    expect(result).toMatchObject({ kind: 'accepted' })
  })

  it('some blank lines around its replies → accepted', async () => {
    const { result } = await sendTo(answering('RCPT', '\r\n250 OK\r\n\r\n'), 'at once')
    expect(result).toMatchObject({ kind: 'accepted' })
  })
})
