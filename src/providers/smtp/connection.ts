/**
 * One session with a mail server: nodemailer's connection, with promises. nodemailer reports a lost connection only to
 * the callbacks of some steps. For all other steps it only emits `end`.
 */
import type { Readable } from 'node:stream'
import type SMTPConnection from 'nodemailer/lib/smtp-connection'
import type { SmtpFailure } from './errors.ts'
import { StepConnection } from './replies-in-step.ts'

export interface ServerSettings extends SMTPConnection.Options {
  readonly login?: { readonly user: string; readonly pass: string }
  /** Time for greeting, TLS and login together. */
  readonly openWithinMs: number
}

export interface Mail {
  readonly envelope: SMTPConnection.Envelope
  readonly bytes: Buffer
}

export interface Sent {
  /** The queue id, if the server's answer has one. */
  readonly serverMessageId?: string
}

export type Connection = ReturnType<typeof openConnection>

/** Bytes of one reply: the longest is a list of extensions. Time limits are of the caller. */
const limits = { maxResponseSize: 65_536, socketCloseTimeout: 0 }

/** Time for the server's answer to QUIT. */
const quitMs = 1_000

const noAnswer = () => Object.assign(new Error('no answer in time'), { code: 'ETIMEDOUT' })
export const connectionLost = () =>
  Object.assign(new Error('connection lost'), { code: 'ECONNECTION' })
/** Without the login, many servers refuse each recipient, as if the mail were at fault. */
const noLogin = () => Object.assign(new Error('no AUTH offered'), { code: 'ENOAUTH' })

const outOfStep = () => Object.assign(new Error('replies out of step'), { code: 'EPROTOCOL' })

/** The server refused a mail, and the session can go on. */
const isRefusal = ({ code = '', responseCode }: SmtpFailure) =>
  ['EENVELOPE', 'EMESSAGE'].includes(code) && responseCode !== 421

/** `onEnd` is called once, when the server, nodemailer or the caller has ended the connection. */
export function openConnection(
  { login, openWithinMs, ...server }: ServerSettings,
  onEnd: (connection: Connection) => void,
) {
  const options = { ...server, ...limits, dnsTimeout: openWithinMs }
  const smtp = new StepConnection(options, () => end(outOfStep()))
  let cause: SmtpFailure | undefined
  let refusals = 0
  let isReady = false
  smtp.on('error', (error) => {
    cause ??= error
  })

  function end(reason: SmtpFailure): void {
    cause ??= reason
    smtp.close()
  }

  function step<Answer>(
    run: (done: (error?: SmtpFailure | null, answer?: Answer) => void) => void,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      // A callback that gets the error is called directly after the event.
      const lost = () => setImmediate(() => reject(cause ?? connectionLost()))
      smtp.once('end', lost)
      run((error, answer) => {
        smtp.off('end', lost)
        if (error) reject(error)
        else resolve(answer as Answer)
      })
    })
  }

  async function open(): Promise<void> {
    const timer = setTimeout(() => end(noAnswer()), openWithinMs)
    try {
      await step((done) => smtp.connect(done))
      if (login) {
        if (!smtp.allowsAuth) throw noLogin()
        await step((done) => smtp.login({ credentials: login }, done))
      }
      isReady = true
    } catch (error) {
      end(error as SmtpFailure)
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  async function transmit({ envelope, bytes }: Mail, onHandedOver: () => void) {
    // nodemailer calls `pipe` when the server wants the content, and needs nothing else of a stream.
    const content: Pick<Readable, 'pipe'> = {
      pipe(server) {
        if (!smtp.isInStepForContent) {
          end(outOfStep())
          return server
        }
        server.end(bytes)
        onHandedOver()
        return server
      },
    }
    try {
      // nodemailer keeps the server's answers in the envelope.
      const sent = await step<Sent>((done) => smtp.send({ ...envelope }, content as Readable, done))
      refusals = 0
      return sent
    } catch (error) {
      if (!isRefusal(error as SmtpFailure) || smtp.destroyed) end(error as SmtpFailure)
      else {
        refusals++
        await step((done) => smtp.reset(done)).catch(end)
      }
      throw error
    }
  }

  const connection = {
    /** Fails if the server is out of reach, or does not offer or accept the login. */
    opened: open(),
    isReady: () => isReady,
    isOpen: () => !smtp.destroyed,
    /** Refused mails since the last accepted one. */
    refusals: () => refusals,

    /**
     * `onHandedOver` is called when the end of the message is sent: from then on, the server may have accepted it. The
     * connection stays open after a refusal. It ends with any other error, and with `signal`.
     */
    async send(mail: Mail, signal: AbortSignal, onHandedOver: () => void): Promise<Sent> {
      const abort = () => end(noAnswer())
      signal.addEventListener('abort', abort, { once: true })
      if (signal.aborted) abort()
      try {
        await connection.opened
        return await transmit(mail, onHandedOver)
      } finally {
        signal.removeEventListener('abort', abort)
      }
    },

    quit(): void {
      if (isReady) smtp.quit()
      setTimeout(() => smtp.close(), quitMs).unref()
    },

    close(): void {
      end(connectionLost())
    },
  }
  smtp.once('end', () => onEnd(connection))
  connection.opened.catch(() => {})
  return connection
}
