import { Readable } from 'node:stream'
import nodemailer from 'nodemailer'
import { startDeadline } from '../../base/deadline.ts'
import { isForeignId } from '../../base/ids.ts'
import type { Message, Provider, SendResult } from '../provider.ts'
import type { ProviderDeps, ProviderKind } from '../provider-kind.ts'
import { accepted } from '../send-result.ts'
import { resultOfFailure, type SmtpFailure } from './errors.ts'
import { isAddrSpec, type SmtpSettings, smtpSettings } from './settings.ts'
import { subjectHeader } from './subject.ts'

/**
 * Mail over SMTP through a pool of connections.
 *
 * The Message-ID is made of the notice id, so every retry carries the same one and a receiving server
 * can drop the repeat. Whether a lost connection means "not taken" or "perhaps taken" is decided by
 * one fact: had the last byte of the message been read for sending?
 */
export const smtp: ProviderKind<SmtpSettings> = {
  kind: 'smtp',
  channels: ['email'],
  settings: smtpSettings,
  create: createSmtp,
  probe: probeSmtp,
}

/** Connects, and logs in where there is a login. */
async function probeSmtp(settings: SmtpSettings, timeoutMs: number): Promise<string | undefined> {
  const transport = nodemailer.createTransport(connectionOf(settings, timeoutMs))
  try {
    await transport.verify()
    return undefined
  } catch (error) {
    const { detail } = resultOfFailure(error as SmtpFailure, false) as { detail?: string }
    return detail
  } finally {
    transport.close()
  }
}

function connectionOf({ url: server }: SmtpSettings, timeoutMs: number) {
  return {
    host: server.host,
    port: server.port,
    secure: server.secure,
    ignoreTLS: server.tls === 'off',
    requireTLS: server.tls === 'required',
    ...(server.auth ? { auth: server.auth } : {}),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
    socketTimeout: timeoutMs,
  }
}

/** The server hangs up on idle connections within minutes; we do it first and never meet a dead one. */
const idleTimeoutMs = 60_000

function createSmtp(name: string, settings: SmtpSettings, deps: ProviderDeps): Provider {
  const { timeoutMs } = deps
  const { from } = settings
  const domain = from.address.slice(from.address.lastIndexOf('@') + 1)
  const pool = nodemailer.createTransport({
    ...connectionOf(settings, timeoutMs),
    pool: true,
    maxConnections: settings.connections,
    maxMessages: Number.POSITIVE_INFINITY,
    // Only for a connection that the server had closed before any of the message was read.
    maxRequeues: 1,
    idleTimeout: idleTimeoutMs,
    socketCloseTimeout: 0,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  // A failed connection is reported to the send that waited for it; the pool's own event adds nothing.
  pool.on('error', () => {})
  pool.use('stream', (mail, done) => {
    const { attempt } = mail.data as { attempt?: Attempt }
    mail.message.processFunc((pieces) => {
      const whole = inOnePiece(pieces)
      whole.once('end', () => {
        if (attempt) attempt.isHandedOver = true
      })
      return whole
    })
    done()
  })

  async function send(message: Message, signal: AbortSignal): Promise<SendResult> {
    if (!isAddrSpec(message.to)) {
      return { kind: 'invalid_recipient', detail: 'not one plain address' }
    }
    const attempt: Attempt = { isHandedOver: false }
    const messageId = `<${message.noticeId}@${domain}>`
    const deadline = startDeadline(signal, timeoutMs)
    try {
      const sent = await pool.sendMail({
        from,
        to: { name: '', address: message.to },
        // As objects, addresses need no parsing; they were checked above.
        envelope: {
          from: { name: '', address: from.address },
          to: { name: '', address: message.to },
        },
        messageId,
        // Instead of random bytes, which nodemailer draws even for a mail of one part.
        baseBoundary: message.noticeId,
        text: message.text,
        ...(message.html === undefined ? {} : { html: message.html }),
        // RFC 3834: no automatic reply should answer a code.
        headers: {
          Subject: subjectHeader(message.subject ?? ''),
          'Auto-Submitted': 'auto-generated',
        },
        signal: deadline.signal,
        attempt,
      } as Parameters<typeof pool.sendMail>[0])
      return accepted(isForeignId(sent.serverMessageId) ? sent.serverMessageId : messageId)
    } catch (error) {
      return resultOfFailure(error as SmtpFailure, attempt.isHandedOver)
    } finally {
      deadline.clear()
    }
  }

  return {
    name,
    kind: smtp.kind,
    channels: smtp.channels,
    slots: settings.connections,
    send,
    async close() {
      pool.close({ force: true })
    },
  }
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

interface Attempt {
  /** The end of the message has left our hands: from here on it may have been taken. */
  isHandedOver: boolean
}
