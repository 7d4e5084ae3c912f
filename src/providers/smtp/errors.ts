import type { SendResult } from '../provider.ts'

/**
 * What an SMTP failure says, and about whom.
 *
 * nodemailer's `code` is no guide (451 and 550 are both EENVELOPE); the reply's own number is. Three rules decide:
 * - What comes before RCPT (greeting, login, TLS, a 4xx to MAIL) is about us or the server; so is 421 at any step: the
 *   server closes the connection.
 * - Any other answer to RCPT or DATA is about this recipient or this message. A 4xx is for later, unless its enhanced
 *   code (RFC 3463) is 4.3.x, the state of the mail system. For a 5xx the enhanced code tells recipient and message apart.
 * - Without a reply all depends on whether the end of the message had been handed over. If not, and the server still
 *   greets others in that time, the silence is about this recipient: servers ask DNS about its domain before they answer
 *   RCPT. (MAIL goes out together with RCPT, and Postfix holds its answer back until RCPT has one.)
 *
 * `detail` is made of numbers and our own words: a server's sentence often repeats the recipient.
 */
export interface SmtpFailure {
  readonly code?: string
  /** What the system said, e.g. ECONNREFUSED, where `code` is nodemailer's word for it. */
  readonly originalCode?: string
  readonly command?: string
  readonly response?: string
  readonly responseCode?: number
}

/** A recipient that is waited for in vain holds a connection each time: a few of them must not hold all. */
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
    const isSilence = code === 'EABORT' || code === 'ETIMEDOUT'
    return isSilence && isServerAlive
      ? { kind: 'postponed', retryAfterMs: silentRetryAfterMs, detail }
      : { kind: 'unavailable', detail }
  }
  const enhanced = enhancedCode(failure.response ?? '')
  const step = ['MAIL FROM', 'RCPT TO', 'DATA'].find((name) => name === command)
  const detail = ['SMTP', responseCode, enhanced, step && `at ${step}`].filter(Boolean).join(' ')
  if (step === undefined || [421, 503, 530].includes(responseCode)) {
    return { kind: 'unavailable', detail }
  }
  if (responseCode < 500) {
    const isAboutServer = step === 'MAIL FROM' || enhanced?.startsWith('4.3.')
    return { kind: isAboutServer ? 'unavailable' : 'postponed', detail }
  }
  if (isAboutRecipient(responseCode, enhanced, step)) return { kind: 'invalid_recipient', detail }
  return { kind: 'rejected', detail }
}

const faultWords: Readonly<Record<string, string>> = {
  EABORT: 'no answer in time',
  ETIMEDOUT: 'no answer in time',
  EDNS: 'host not found',
  ETLS: 'TLS failed',
  EAUTH: 'login failed',
  ENOAUTH: 'login failed',
  EPROTOCOL: 'answer not understood',
  ESOCKET: 'connection lost',
  ECONNECTION: 'connection lost',
}

function enhancedCode(response: string): string | undefined {
  return /^\d{3}[ -]([245]\.\d{1,3}\.\d{1,3})\b/.exec(response)?.[1]
}

function isAboutRecipient(responseCode: number, enhanced: string | undefined, step: string) {
  if (enhanced === undefined) {
    // RFC 5321, 3.3: a recipient known not to be deliverable is answered with 550.
    return step === 'RCPT TO' && [550, 551, 553].includes(responseCode)
  }
  if (step === 'MAIL FROM') return false
  // 5.1.7 and 5.1.8 are about the sender's address, 5.2.3 about the size of the message.
  const { 1: subject, 2: number } = enhanced.split('.')
  return (
    (subject === '1' && number !== '7' && number !== '8') || (subject === '2' && number !== '3')
  )
}
