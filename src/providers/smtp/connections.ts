/**
 * The open connections to one mail server, each a pool of nodemailer's that has this one.
 *
 * A server counts the errors of a session. Postfix answers every command a second late from the tenth on and ends the
 * session at the twentieth, whoever the next mail is for; a refused mail is two errors, because RCPT and DATA go out
 * together. So recipients that are refused would make good mail wait, and a connection that has met a few is replaced.
 */
import { Readable } from 'node:stream'
import nodemailer from 'nodemailer'
import type { SmtpFailure } from './errors.ts'

/** The server hangs up on idle connections within minutes; we do it first and never meet a dead one. */
const idleTimeoutMs = 60_000

const maxRefusals = 4

type Mail = Parameters<ReturnType<typeof openTransport>['sendMail']>[0]

export function createConnections(server: object, count: number) {
  const open = () => ({ transport: openTransport(server), underWay: 0, refusals: 0 })
  const all = Array.from({ length: count }, open)
  let isClosed = false

  return {
    /** `onHandedOver` is called when the end of the message leaves our hands: from then on it may have been taken. */
    async send(mail: Mail & { signal: AbortSignal }, onHandedOver: () => void) {
      // The first of those that are free, so that it is one which is connected.
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

    /** Ends every connection; mails under way are given up. */
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
    // Only for a connection that the server had closed before any of the message was read.
    maxRequeues: 1,
    idleTimeout: idleTimeoutMs,
    socketCloseTimeout: 0,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  // A failed connection is reported to the send that waited for it; the pool's own event adds nothing.
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
 * The message as one chunk, so that it leaves in one write. nodemailer composes it in pieces, nine for
 * a text with its HTML form, and each would be a system call here and a wake-up at the server.
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
