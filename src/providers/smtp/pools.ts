/**
 * The open connections to one mail server: a pool of nodemailer's, and its successors.
 *
 * A server counts the refusals of a session. Postfix answers every command a second late from the tenth on and ends the
 * session at the twentieth, whoever the next mail is for: recipients that are refused would make good mail wait. So
 * after a few refusals a new pool takes the place of the old one, which is closed when its last mail is through.
 */
import { Readable } from 'node:stream'
import nodemailer from 'nodemailer'
import type { SmtpFailure } from './errors.ts'

/** The server hangs up on idle connections within minutes; we do it first and never meet a dead one. */
const idleTimeoutMs = 60_000

/** By all connections of a pool together; at worst one of them met all. */
const maxRefusals = 8

type Transport = ReturnType<typeof openTransport>
type Mail = Parameters<Transport['sendMail']>[0]

export function createPools(server: object, connections: number) {
  const open = new Set<Transport>()
  let current = openPool()
  let isClosed = false

  function openPool() {
    const transport = openTransport(server, connections)
    open.add(transport)
    return { transport, underWay: 0, refusals: 0 }
  }

  return {
    /** `onHandedOver` is called when the end of the message leaves our hands: from then on it may have been taken. */
    async send(mail: Mail & { signal: AbortSignal }, onHandedOver: () => void) {
      const pool = current
      pool.underWay++
      try {
        return await pool.transport.sendMail({ ...mail, onHandedOver } as Mail)
      } catch (error) {
        if (((error as SmtpFailure).responseCode ?? 0) >= 400) pool.refusals++
        throw error
      } finally {
        pool.underWay--
        if (pool.refusals >= maxRefusals && !isClosed) {
          if (pool === current) current = openPool()
          if (pool.underWay === 0) {
            pool.transport.close()
            open.delete(pool.transport)
          }
        }
      }
    },

    /** Ends every connection; mails under way are given up. */
    close(): void {
      isClosed = true
      for (const transport of open) transport.close({ force: true })
    },
  }
}

function openTransport(server: object, connections: number) {
  const transport = nodemailer.createTransport({
    ...server,
    pool: true,
    maxConnections: connections,
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
