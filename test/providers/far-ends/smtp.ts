import type { AddressInfo, Socket } from 'node:net'
import { createServer } from 'node:net'
import PostalMime from 'postal-mime'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import type { Behaviour, FarEnd } from '../conformance.ts'

/**
 * A real SMTP server behind a proxy that sees every connection. Faults below SMTP (hang, cut, nonsense) are made by
 * the proxy.
 */
export interface SmtpFarEnd extends FarEnd {
  readonly port: number
  readonly taken: { reference: string; to: string; mail: string }[]
  /** Answers the step with this line from now on; `undefined`: behaves well again. */
  answer(step: 'MAIL' | 'RCPT' | 'DATA', line: string | undefined): void
  /** How many connections it has had. */
  connectionCount(): number
  /** Milliseconds between the bytes of all its replies (F20). */
  drip(everyMs: number): void
}

type Write = (this: Socket, data: Buffer | string, ...rest: unknown[]) => boolean

const replies: Partial<Record<Behaviour, { step: 'MAIL' | 'RCPT' | 'DATA'; line: string }>> = {
  reject: { step: 'DATA', line: '554 5.7.1 Message rejected' },
  invalid_recipient: { step: 'RCPT', line: '550 5.1.1 <$to>: Recipient address rejected' },
  postpone: { step: 'RCPT', line: '451 4.7.1 <$to>: Greylisted, come back later' },
  unavailable: { step: 'MAIL', line: '452 4.3.1 Insufficient system storage' },
  error_inside: { step: 'DATA', line: '552 5.2.2 <$to>: Mailbox full' },
}

export async function startSmtpFarEnd(options: SMTPServerOptions = {}): Promise<SmtpFarEnd> {
  let behaviour: Behaviour = 'accept'
  let dripMs = 0
  let connections = 0
  const answers = new Map<string, string>()
  const taken: SmtpFarEnd['taken'] = []
  const complaints: string[] = []
  const sockets = new Set<Socket>()

  const failure = (step: 'MAIL' | 'RCPT' | 'DATA', to = '') => {
    const own = replies[behaviour]
    const line = answers.get(step) ?? (own?.step === step ? own.line : undefined)
    if (line === undefined) return null
    const [, code = '', text = ''] = /^(\d{3}) (.*)$/.exec(line) ?? []
    return Object.assign(new Error(text.replace('$to', to)), { responseCode: Number(code) })
  }

  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: options.secure || options.key ? [] : ['STARTTLS'],
    hideENHANCEDSTATUSCODES: true,
    closeTimeout: 50,
    onMailFrom: (_address, _session, done) => done(failure('MAIL')),
    onRcptTo: ({ address }, _session, done) => done(failure('RCPT', address)),
    onData(stream, session, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', async () => {
        const to = session.envelope.rcptTo.map(({ address }) => address).join(',')
        const refused = failure('DATA', to)
        if (refused) return done(refused)
        const mail = Buffer.concat(chunks).toString()
        const { messageId = '' } = await PostalMime.parse(mail)
        taken.push({ reference: /^<(.*)@acme\.test>$/.exec(messageId)?.[1] ?? messageId, to, mail })
        if (behaviour === 'lose_answer') return cut()
        done(null)
      })
    },
    ...options,
  })
  server.on('error', () => {})

  function cut() {
    // Node keeps the handle of a socket that is reset after its end.
    for (const socket of sockets) {
      if (socket.writableEnded) socket.destroy()
      else socket.resetAndDestroy()
    }
  }

  const door = createServer((socket) => {
    connections += 1
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    if (behaviour === 'refuse_talk') return void socket.resetAndDestroy()
    if (behaviour === 'hang') return
    if (behaviour === 'babble') return void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')
    const write = socket.write as Write
    if (dripMs > 0) socket.write = drip.bind(undefined, socket, write) as typeof socket.write
    watchForReset(socket, write)
    server.server.emit('connection', socket)
  })

  /** `reset_mid_answer`: the reply that ends the message stops after two digits. */
  function watchForReset(socket: Socket, write: Write) {
    const usual = socket.write as Write
    socket.write = ((data: Buffer | string, ...rest: unknown[]) => {
      if (behaviour === 'reset_mid_answer' && /^354/.test(String(data))) {
        // The next reply is the final one.
        socket.write = ((reply: Buffer | string) => {
          write.call(socket, String(reply).slice(0, 2), () => socket.resetAndDestroy())
          return true
        }) as typeof socket.write
        return write.call(socket, data, ...rest)
      }
      return usual.call(socket, data, ...rest)
    }) as typeof socket.write
  }

  function drip(socket: Socket, write: Write, data: Buffer | string): boolean {
    const bytes = [...Buffer.from(data as string)]
    const timer = setInterval(() => {
      const byte = bytes.shift()
      if (byte === undefined || socket.destroyed) clearInterval(timer)
      else write.call(socket, Buffer.from([byte]))
    }, dripMs)
    return true
  }

  await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve))
  return {
    port: (door.address() as AddressInfo).port,
    taken,
    complaints,
    // An earlier connection would not show a new behaviour of the proxy.
    async behave(next) {
      behaviour = next
      for (const socket of sockets) socket.end()
    },
    answer(step, line) {
      if (line === undefined) answers.delete(step)
      else answers.set(step, line)
    },
    drip(everyMs) {
      dripMs = everyMs
    },
    openConnections: () => sockets.size,
    connectionCount: () => connections,
    close() {
      cut()
      server.close(() => {})
      return new Promise((resolve) => door.close(() => resolve()))
    },
  }
}
