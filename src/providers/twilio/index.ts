import { html } from '../../base/html.ts'
import { basicLogin } from '../../base/http-client.ts'
import { parseObject } from '../../base/json.ts'
import { defineHttpKind, formOf, type Http } from '../http-provider.ts'
import { type Message, type SendResult, secondsLeft } from '../provider.ts'
import { accepted, type Refusal, refused } from '../send-result.ts'
import { createReceiptReader } from './receipts.ts'
import { callbackUrl, type TwilioSettings, twilioSettings } from './settings.ts'

/**
 * SMS by Twilio's Messages API, and calls that read the text aloud. Neither has a field for the notice id, and neither
 * detects repeats. The notice id is part of the address for receipts, so set `statusCallback`.
 */
export const twilio = defineHttpKind({
  kind: 'twilio',
  channels: ['sms', 'voice'],
  settings: twilioSettings,
  channelsOf: ({ channels }) => channels,
  senderOf: ({ from }) => from,
  connect: connectTwilio,
  createReceiptReader,
  probe: {
    call: (settings) => ({
      method: 'GET',
      url: new URL(`/2010-04-01/Accounts/${settings.accountSid}.json`, settings.endpoint).href,
      headers: { authorization: basicLogin(settings.accountSid, settings.authToken) },
    }),
    faultIn(answer) {
      if (answer.status === 401) return 'twilio refuses this accountSid with this authToken'
      if (answer.status !== 200) return `twilio answers ${answer.status}`
      const status = parseObject(answer.body)?.status
      if (status === 'active') return undefined
      return `twilio: the account is not active (${wordOf(status)})`
    },
  },
})

/** The largest ValidityPeriod of the Messages API. */
const longestValidSeconds = 36_000

const wordOf = (value: unknown) =>
  typeof value === 'string' && /^[a-z]{1,20}$/.test(value) ? value : 'no status'

const smsParameters = (message: Message, messagingServiceSid: string | undefined) => ({
  Body: message.text,
  MessagingServiceSid: messagingServiceSid,
  ValidityPeriod: secondsLeft(message, longestValidSeconds),
})

function connectTwilio({ ask, notUnderstood }: Http, settings: TwilioSettings) {
  const { accountSid, messagingServiceSid } = settings
  const urlOf = (resource: 'Messages' | 'Calls') =>
    new URL(`/2010-04-01/Accounts/${accountSid}/${resource}.json`, settings.endpoint).href
  const headers = {
    authorization: basicLogin(accountSid, settings.authToken),
    'content-type': 'application/x-www-form-urlencoded',
    accept: 'application/json',
  }

  async function send(
    message: Message,
    signal: AbortSignal,
    sender: string | undefined,
  ): Promise<SendResult> {
    const isCall = message.channel === 'voice'
    const body = formOf({
      To: message.to,
      From: sender,
      StatusCallback: callbackUrl(settings, message.noticeId),
      ...(isCall ? callParameters(message) : smsParameters(message, messagingServiceSid)),
    })
    const url = urlOf(isCall ? 'Calls' : 'Messages')
    const { result, answer } = await ask({ url, headers, body }, signal)
    if (result) return result
    const sent = parseObject(answer.body)
    if (answer.status < 200 || answer.status >= 300) return resultOfError(sent?.code, answer.status)
    if (typeof sent?.sid !== 'string') return notUnderstood(answer)
    if (sent.status === 'failed' || sent.status === 'undelivered') {
      return resultOfError(sent.error_code, answer.status)
    }
    return accepted(sent.sid)
  }

  return { send }
}

/**
 * Maps the numbered errors of Twilio's Error and Warning Dictionary to results. Twilio adds more specific numbers over
 * time. So only numbers that change the result are listed; for other errors, the HTTP status decides.
 */
const kinds: ReadonlyMap<unknown, Refusal | 'barred' | 'opted_out'> = new Map([
  [10001, 'unavailable'], // account is not active
  [20003, 'unavailable'], // permission denied
  [20429, 'throttled'], // too many requests
  [21211, 'invalid_recipient'], // invalid To number
  [21214, 'invalid_recipient'], // the number can't be called
  [21215, 'barred'], // the account may not call this country
  [21216, 'barred'], // Twilio does not call this number
  [21217, 'invalid_recipient'], // no valid number
  [21265, 'invalid_recipient'], // To is a short code
  [21610, 'opted_out'], // the recipient has opted out of this sender
  [21611, 'throttled'], // ten hours of messages are queued for this sender
  [21614, 'invalid_recipient'], // To is not a mobile number
  [21635, 'barred'], // To is a landline in a country where Twilio sends to none
  [30001, 'throttled'], // queue overflow
  [30002, 'unavailable'], // account suspended
  [30003, 'postponed'], // unreachable handset: the phone is off
  [30005, 'invalid_recipient'], // unknown handset
  [30006, 'invalid_recipient'], // landline or unreachable carrier
  [30008, 'postponed'], // unknown error of the carrier: its network refused without a reason
])

/** The pause for a full queue. */
const queueWaitMs = 60_000

export function resultOfError(code: unknown, status: number): SendResult {
  const detail = `twilio ${Number.isInteger(code) ? code : `HTTP ${status}`}`
  const byStatus = status === 400 || status === 201 ? 'rejected' : 'unavailable'
  return refused(kinds.get(code) ?? byStatus, detail, code === 20429 ? undefined : queueWaitMs)
}

/** So long the phone rings. A mailbox of the carrier would answer later. */
const ringSeconds = 30

/** The parameters of a call (https://www.twilio.com/docs/voice/api/call-resource, read on 2026-11-27). */
function callParameters(message: Message): Record<string, string> {
  return {
    Twiml: twimlFor(message),
    Timeout: String(secondsLeft(message, ringSeconds) ?? ringSeconds),
  }
}

/** The person can write the digits down when the text is read again. */
function twimlFor({ text, locale }: Message): string {
  const spoken = html`<Say language="${languageOf(locale)}">${readable(text)}</Say>`
  const twiml = html`<Response><Pause length="1"/>${spoken}<Pause length="1"/>${spoken}</Response>`
  return `<?xml version="1.0" encoding="UTF-8"?>${twiml}`
}

/** Twilio's names of languages have a country: `de-DE` for `de`, `zh-TW` for `zh-Hant`. */
function languageOf(locale: string): string {
  const { language, region } = new Intl.Locale(locale).maximize()
  return `${language}-${region}`
}

/** XML can't have other control characters, not even escaped. */
const readable = (text: string) =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is removed
  text.toWellFormed().replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, ' ')
