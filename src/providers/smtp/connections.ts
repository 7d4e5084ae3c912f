/**
 * The open connections to one mail server. Each is a nodemailer pool with one connection.
 *
 * A server counts the errors of a session. Postfix delays every command by a second from the tenth error on, and ends the
 * session at the twentieth. A refused mail is two errors, because RCPT and DATA are sent together. So refused recipients
 * would delay good mails. A connection with several errors is therefore replaced.
 */
import { Readable } from 'node:stream'
import nodemailer from 'nodemailer'
import type { SmtpFailure } from './errors.ts'

/** Servers close idle connections within minutes. Postern closes them first, so that no mail meets a closed connection. */
const idleTimeoutMs = 60_000

const maxRefusals = 4

type Mail = Parameters<ReturnType<typeof openTransport>['sendMail']>[0]

export function createConnections(server: object, count: number) {
  const open = () => ({ transport: openTransport(server), underWay: 0, refusals: 0 })
  const all = Array.from({ length: count }, open)
  let isClosed = false

  return {
    /** `onHandedOver` is called when the end of the message is sent: from then on, the server may have accepted it. */
    async send(mail: Mail & { signal: AbortSignal }, onHandedOver: () => void) {
      // The first free connection, because it is probably connected.
      const one = all.reduce((best, other) => (other.underWay < best.underWay ? other : best))
      one.underWay++
      try {
        return await one.transport.sendMail({ ...mail, onHandedOver } as Mail)
      } catch (error) {
        if (((error as SmtpFailure).responseCode ?? 0) >= 400) one.refusals++
        throw error
      } finally {
        one.underWay--
        if (one.refusals >= maxRefusals && one.underWay === 0 && !isClosed) {
          one.transport.close()
          Object.assign(one, open())
        }
      }
    },

    /** Ends all connections and stops mails under way. */
    close(): void {
      isClosed = true
      for (const { transport } of all) transport.close({ force: true })
    },
  }
}

function openTransport(server: object) {
  const transport = nodemailer.createTransport({
    ...server,
    pool: true,
    maxConnections: 1,
    maxMessages: Number.POSITIVE_INFINITY,
    // Only for connections that the server closed before the message was read.
    maxRequeues: 1,
    idleTimeout: idleTimeoutMs,
    socketCloseTimeout: 0,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  // The waiting send receives the error of a failed connection, so the event of the pool is ignored.
  transport.on('error', () => {})
  transport.use('stream', (mail, done) => {
    const { onHandedOver } = mail.data as { onHandedOver?: () => void }
    mail.message.processFunc((pieces) => {
      const whole = inOnePiece(pieces)
      whole.once('end', () => onHandedOver?.())
      return whole
    })
    done()
  })
  return transport
}

/**
 * Joins the message into one chunk, so that it is sent in one write. nodemailer composes it in pieces (nine for a text with
 * HTML), and each piece would cost a system call here and a wake-up at the server.
 */
function inOnePiece(pieces: Readable): Readable {
  const whole = new Readable({ read() {} })
  const chunks: Buffer[] = []
  pieces.on('data', (chunk: Buffer) => chunks.push(chunk))
  pieces.once('error', (error) => whole.destroy(error))
  pieces.once('end', () => {
    whole.push(Buffer.concat(chunks))
    whole.push(null)
  })
  return whole
}
