import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import PostalMime, { type Email } from 'postal-mime'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { releaseLater } from './release.ts'
import { eventually } from './wait.ts'

export interface ReceivedMail extends Email {
  /** The addresses of the SMTP conversation, which decide where a mail goes. */
  readonly envelope: { readonly from: string; readonly to: readonly string[] }
  readonly receivedAtMs: number
}

export interface TestSmtp {
  readonly url: string
  readonly port: number
  /** All accepted mails, oldest first. */
  readonly mails: readonly ReceivedMail[]
  waitForMail(
    predicate: (mail: ReceivedMail) => boolean,
    options?: { withinMs?: number },
  ): Promise<ReceivedMail>
  close(): Promise<void>
}

/**
 * A real SMTP server on loopback that keeps the mails it accepts. `options` are the options of `smtp-server`: TLS,
 * logins, and handlers that refuse, delay or break. With `wantedPort`, a server that was closed comes back.
 */
export async function startSmtp(
  options: SMTPServerOptions = {},
  wantedPort = 0,
): Promise<TestSmtp> {
  const mails: ReceivedMail[] = []
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    disableReverseLookup: true,
    closeTimeout: 500,
    onData(stream, session, callback) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', async () => {
        const { mailFrom, rcptTo } = session.envelope
        const envelope = {
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map((recipient) => recipient.address),
        }
        const email = await PostalMime.parse(Buffer.concat(chunks))
        mails.push({ ...email, envelope, receivedAtMs: Date.now() })
        callback()
      })
    },
    ...options,
  })
  // A client that disconnects in the middle of a command is no failure of the test.
  server.on('error', () => {})
  server.listen(wantedPort, '127.0.0.1')
  await once(server.server, 'listening')
  const { port } = server.server.address() as AddressInfo

  let closed: Promise<void> | undefined
  const close = () => {
    closed ??= new Promise<void>((done) => server.close(done))
    return closed
  }
  releaseLater(close)
  return {
    url: `${options.secure ? 'smtps' : 'smtp'}://127.0.0.1:${port}`,
    port,
    mails,
    waitForMail: (predicate, waiting) => eventually(() => mails.find(predicate) ?? false, waiting),
    close,
  }
}
