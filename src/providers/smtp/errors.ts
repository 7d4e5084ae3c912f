import type { SendResult } from '../provider.ts'

/**
 * Maps SMTP failures to results.
 *
 * The `code` of nodemailer is not exact enough (451 and 550 are both EENVELOPE), so the number of the reply decides:
 * - A failure before RCPT (greeting, login, TLS, a 4xx to MAIL) concerns the server or the account. So does 421 at any
 *   step, because the server closes the connection.
 * - Any other answer to RCPT or DATA concerns this recipient or this message. A 4xx is temporary, unless its enhanced code
 *   (RFC 3463) is 4.3.x, the state of the mail system. For a 5xx, the enhanced code separates recipient and message.
 * - Without a reply, the result depends on whether the end of the message was sent. If not, and if the server greets other
 *   connections meanwhile, the silence concerns this recipient: servers query DNS for its domain before they answer RCPT.
 *   (MAIL is sent together with RCPT, and Postfix delays its answer until RCPT has one.)
 *
 * `detail` contains only numbers and texts of Postern, because sentences of a server often repeat the recipient.
 */
export interface SmtpFailure {
  readonly code?: string
  /** The error of the system, e.g. ECONNREFUSED. `code` is then a name that nodemailer uses. */
  readonly originalCode?: string
  readonly command?: string
  readonly response?: string
  readonly responseCode?: number
}

/** Answers to MAIL, RCPT or DATA in a session without a login, or whose login is no longer valid (RFC 4954). */
const aboutLogin = [530, 534, 535, 538]

/**
 * "Daily user sending limit exceeded" of Gmail is 550 5.4.5 (https://support.google.com/a/answer/3726730), although RFC 3463
 * calls this number a congestion. So no other message is accepted for a time.
 */
const quotaUsed = '5.4.5'
const quotaWaitMs = 3_600_000

/** A silent recipient occupies a connection during each attempt. The pause keeps a few of them from occupying all. */
const silentRetryAfterMs = 30_000

export function resultOfFailure(
  failure: SmtpFailure,
  isHandedOver: boolean,
  isServerAlive = false,
): SendResult {
  const { responseCode, command, code, originalCode } = failure
  if (responseCode === undefined || responseCode < 400) {
    const cause = /^[A-Z0-9_]{1,60}$/.test(originalCode ?? '') ? ` (${originalCode})` : ''
    const detail = `SMTP ${faultWords[code ?? ''] ?? 'connection lost'}${cause}`
    if (isHandedOver) return { kind: 'unknown', detail }
    return code === 'ETIMEDOUT' && isServerAlive
      ? { kind: 'postponed', retryAfterMs: silentRetryAfterMs, detail }
      : { kind: 'unavailable', detail }
  }
  const enhanced = enhancedCode(failure.response ?? '')
  const step = ['MAIL FROM', 'RCPT TO', 'DATA'].find((name) => name === command)
  const detail = ['SMTP', responseCode, enhanced, step && `at ${step}`].filter(Boolean).join(' ')
  if (step === undefined || [421, 503, ...aboutLogin].includes(responseCode)) {
    return { kind: 'unavailable', detail }
  }
  if (enhanced === quotaUsed) return { kind: 'throttled', retryAfterMs: quotaWaitMs, detail }
  if (responseCode < 500) {
    const isAboutServer = step === 'MAIL FROM' || enhanced?.startsWith('4.3.')
    return { kind: isAboutServer ? 'unavailable' : 'postponed', detail }
  }
  if (isAboutRecipient(responseCode, enhanced, step)) {
    const isGone = step !== 'MAIL FROM' && goneCodes.includes(`${enhanced}`)
    return { kind: 'invalid_recipient', ...(isGone ? { suppresses: 'bounced' } : {}), detail }
  }
  return { kind: 'rejected', detail }
}

/**
 * RFC 3463 and RFC 7505: bad mailbox, bad system, bad syntax, mailbox has moved, null MX. No later mail to the address can
 * arrive. Servers write other numbers, and a bare 550, also for spam and for policies.
 */
const goneCodes = ['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10']

const faultWords: Readonly<Record<string, string>> = {
  ETIMEDOUT: 'no answer in time',
  EDNS: 'host not found',
  ETLS: 'TLS failed',
  EAUTH: 'login failed',
  ENOAUTH: 'server offers no login',
  EPROTOCOL: 'answer not understood',
  ESOCKET: 'connection lost',
  ECONNECTION: 'connection lost',
}

function enhancedCode(response: string): string | undefined {
  return /^\d{3}[ -]([245]\.\d{1,3}\.\d{1,3})\b/.exec(response)?.[1]
}

function isAboutRecipient(responseCode: number, enhanced: string | undefined, step: string) {
  if (enhanced === undefined) {
    // RFC 5321, 3.3: the answer for an undeliverable recipient is 550.
    return step === 'RCPT TO' && [550, 551, 553].includes(responseCode)
  }
  if (step === 'MAIL FROM') return false
  const { 1: subject, 2: number = '' } = enhanced.split('.')
  // 5.1.7 and 5.1.8 are about the sender's address.
  if (subject === '1') return number !== '7' && number !== '8'
  // The mailbox is disabled, full, or a list. 5.2.0 counts only as an answer to RCPT TO: Exchange Online gives it to the content
  // if the account may not send, as 5.2.252. 5.2.3 is about the size of the message.
  const aboutMailbox = step === 'RCPT TO' ? ['0', '1', '2', '4'] : ['1', '2', '4']
  return subject === '2' && aboutMailbox.includes(number)
}
