import nodemailer from 'nodemailer'
import { startDeadline } from '../../base/deadline.ts'
import { isForeignId } from '../../base/ids.ts'
import type { Message, Provider, SendResult } from '../provider.ts'
import type { ProviderDeps, ProviderKind } from '../provider-kind.ts'
import { accepted } from '../send-result.ts'
import { createConnections } from './connections.ts'
import { resultOfFailure, type SmtpFailure } from './errors.ts'
import { isAddrSpec, type SmtpSettings, smtpSettings } from './settings.ts'
import { subjectHeader } from './subject.ts'
import { unsubscribeHeaders } from './unsubscribe.ts'

/**
 * Mail over SMTP through connections that are kept open (connections.ts).
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

/** After so long without an answer the server is looked at: a look ends before the breaker calls the mail overdue. */
const quietMs = 700

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

function connectionOf({ url: server, ehlo }: SmtpSettings, timeoutMs: number) {
  return {
    host: server.host,
    port: server.port,
    secure: server.secure,
    ignoreTLS: server.tls === 'off',
    requireTLS: server.tls === 'required',
    ...(ehlo === undefined ? {} : { name: ehlo }),
    ...(server.auth ? { auth: server.auth } : {}),
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
    socketTimeout: timeoutMs,
  }
}

function createSmtp(name: string, settings: SmtpSettings, deps: ProviderDeps): Provider {
  const { timeoutMs } = deps
  const { from } = settings
  const domain = from.address.slice(from.address.lastIndexOf('@') + 1)
  const connections = createConnections(connectionOf(settings, timeoutMs), settings.connections)

  let look: Promise<boolean> | undefined

  /** Whether the server greets us on another connection. One look at a time, for all mails that wait. */
  function isAlive(): Promise<boolean> {
    look ??= probeSmtp(settings, timeoutMs)
      .then((fault) => fault === undefined)
      .finally(() => {
        look = undefined
      })
    return look
  }

  async function send(
    message: Message,
    signal: AbortSignal,
    onAlive?: () => void,
  ): Promise<SendResult> {
    if (!isAddrSpec(message.to)) {
      return { kind: 'invalid_recipient', detail: 'not one plain address' }
    }
    const unsubscribe = unsubscribeHeaders(message.listUnsubscribe)
    if (unsubscribe === 'tooLong') {
      return { kind: 'rejected', detail: 'List-Unsubscribe is longer than a line' }
    }
    let isHandedOver = false
    const messageId = `<${message.noticeId}@${domain}>`
    const deadline = startDeadline(signal, timeoutMs)
    let isServerAlive = false
    const quiet = setTimeout(async () => {
      isServerAlive = await isAlive()
      if (isServerAlive && !isHandedOver) onAlive?.()
    }, quietMs)
    try {
      const mail = {
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
          ...unsubscribe,
        },
        signal: deadline.signal,
      }
      const sent = await connections.send(mail, () => {
        isHandedOver = true
      })
      return accepted(isForeignId(sent.serverMessageId) ? sent.serverMessageId : messageId)
    } catch (error) {
      return resultOfFailure(error as SmtpFailure, isHandedOver, isServerAlive)
    } finally {
      clearTimeout(quiet)
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
      connections.close()
    },
  }
}
