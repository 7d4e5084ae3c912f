import { startDeadline } from '../../base/deadline.ts'
import { isForeignId } from '../../base/ids.ts'
import type { Message, Provider, SendResult } from '../provider.ts'
import type { ProviderDeps, ProviderKind } from '../provider-kind.ts'
import { accepted } from '../send-result.ts'
import { composeMail, faultOfMail } from './compose.ts'
import { openConnection, type ServerSettings } from './connection.ts'
import { createConnections } from './connections.ts'
import { createSigner } from './dkim.ts'
import { resultOfFailure, type SmtpFailure } from './errors.ts'
import { type SmtpSettings, smtpSettingsIn } from './settings.ts'

/**
 * Mail over SMTP through connections that stay open (connections.ts).
 *
 * The Message-ID contains the notice id. So every retry has the same one, and a server can drop the repeat. If the
 * connection was lost before the last byte was read for sending, the message was not accepted. After that byte, the
 * outcome is unknown.
 */
export const smtp: ProviderKind<SmtpSettings> = {
  kind: 'smtp',
  channels: ['email'],
  settings: smtpSettingsIn('.'),
  settingsIn: smtpSettingsIn,
  create: createSmtp,
  probe: probeSmtp,
}

/** A silent connection is left after this multiple of the time that a recent mail needed up to its content. */
const leaveAfterTimes = 2

/** After this time without an answer, the server is probed. A probe ends before the breaker counts the mail as overdue. */
const quietMs = 700

/** Connects, and logs in if the settings have a login. */
async function probeSmtp(settings: SmtpSettings, timeoutMs: number): Promise<string | undefined> {
  const connection = openConnection(serverOf(settings, timeoutMs), () => {})
  try {
    await connection.opened
    return undefined
  } catch (error) {
    const { detail } = resultOfFailure(error as SmtpFailure, false) as { detail?: string }
    return detail
  } finally {
    connection.close()
  }
}

function serverOf({ url: server, ehlo }: SmtpSettings, timeoutMs: number): ServerSettings {
  return {
    host: server.host,
    port: server.port,
    secure: server.secure,
    ignoreTLS: server.tls === 'off',
    requireTLS: server.tls === 'required',
    ...(ehlo === undefined ? {} : { name: ehlo }),
    ...(server.auth ? { login: server.auth } : {}),
    openWithinMs: timeoutMs,
  }
}

function createSmtp(name: string, settings: SmtpSettings, deps: ProviderDeps): Provider {
  const { timeoutMs, answerMs = timeoutMs } = deps
  const { from, dkim } = settings
  const sign = dkim && createSigner(dkim)
  const domain = from.address.slice(from.address.lastIndexOf('@') + 1)
  const connections = createConnections(serverOf(settings, timeoutMs))

  /** The longest recent time up to the content of a mail. Each shorter time reduces it by a tenth. */
  let usualMs = 0
  let look: Promise<boolean> | undefined

  /** Whether the server greets a new connection. All waiting mails share one probe. */
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
    const fault = faultOfMail(message)
    if (fault) return fault
    let isHandedOver = false
    const messageId = `<${message.noticeId}@${domain}>`
    const deadline = startDeadline(signal, timeoutMs)
    let isServerAlive = false
    let isOver = false
    let leave = () => {}
    const startMs = performance.now()
    const timers = [
      setTimeout(async () => {
        isServerAlive = await isAlive()
        // After its end, another mail may have the connection.
        if (!isServerAlive || isHandedOver || isOver) return
        onAlive?.()
        const leaveInMs = leaveAfterTimes * usualMs - (performance.now() - startMs)
        timers.push(setTimeout(() => leave(), Math.max(leaveInMs, 0)))
      }, quietMs),
    ]
    try {
      const mail = await composeMail(message, { from, messageId, sign })
      const onHandedOver = () => {
        isHandedOver = true
        usualMs = Math.max(performance.now() - startMs, usualMs * 0.9)
        deadline.restart(answerMs)
      }
      const onReused = (leaveIt: () => void) => {
        leave = leaveIt
      }
      const sent = await connections.send(mail, deadline.signal, onHandedOver, onReused)
      return accepted(isForeignId(sent.serverMessageId) ? sent.serverMessageId : messageId)
    } catch (error) {
      return resultOfFailure(error as SmtpFailure, isHandedOver, isServerAlive)
    } finally {
      isOver = true
      timers.forEach(clearTimeout)
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
