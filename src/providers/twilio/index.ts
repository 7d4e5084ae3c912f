import { textFor } from '../../base/by-country.ts'
import { createHttpClient } from '../../base/http-client.ts'
import { parseObject } from '../../base/json.ts'
import { createHttpProvider } from '../http-provider.ts'
import type { Message, Provider, SendResult } from '../provider.ts'
import type { ProviderDeps, ProviderKind } from '../provider-kind.ts'
import { secondsLeft } from '../seconds-left.ts'
import { accepted } from '../send-result.ts'
import { hasSenderFor, noSender } from '../sender.ts'
import { callParameters } from './call.ts'
import { resultOfError } from './errors.ts'
import { createReceiptReader } from './receipts.ts'
import { callbackUrl, type TwilioSettings, twilioSettings } from './settings.ts'

/**
 * SMS by Twilio's Messages API, and calls that read the text aloud. Neither has a field for the notice id, and neither
 * detects repeats. The notice id is part of the address for receipts, so set `statusCallback`.
 */
export const twilio: ProviderKind<TwilioSettings> = {
  kind: 'twilio',
  channels: ['sms', 'voice'],
  settings: twilioSettings,
  channelsOf: ({ channels }) => channels,
  serves: ({ from }, country) => hasSenderFor(from, country),
  create: createTwilio,
  probe: probeTwilio,
  createReceiptReader,
}

/** The largest ValidityPeriod of the Messages API. */
const longestValidSeconds = 36_000

async function probeTwilio(
  { accountSid, authToken, endpoint }: TwilioSettings,
  timeoutMs: number,
): Promise<string | undefined> {
  const client = createHttpClient(timeoutMs)
  const url = new URL(`/2010-04-01/Accounts/${accountSid}.json`, endpoint).href
  const headers = { authorization: authorizationOf(accountSid, authToken) }
  const outcome = await client.call({ method: 'GET', url, headers }, new AbortController().signal)
  client.close()
  if (outcome.kind !== 'answered') return `twilio: ${outcome.reason}`
  if (outcome.status === 401) return 'twilio refuses this accountSid with this authToken'
  if (outcome.status !== 200) return `twilio answers ${outcome.status}`
  const status = parseObject(outcome.body)?.status
  return status === 'active' ? undefined : `twilio: the account is not active (${wordOf(status)})`
}

const wordOf = (value: unknown) =>
  typeof value === 'string' && /^[a-z]{1,20}$/.test(value) ? value : 'no status'

const authorizationOf = (accountSid: string, authToken: string) =>
  `Basic ${Buffer.from(`${accountSid}:${authToken}`).toString('base64')}`

function smsParameters(message: Message, messagingServiceSid: string | undefined) {
  const validSeconds = secondsLeft(message, longestValidSeconds)
  return {
    Body: message.text,
    ...(messagingServiceSid === undefined ? {} : { MessagingServiceSid: messagingServiceSid }),
    ...(validSeconds === undefined ? {} : { ValidityPeriod: String(validSeconds) }),
  }
}

function createTwilio(name: string, settings: TwilioSettings, deps: ProviderDeps): Provider {
  const { accountSid, authToken, channels, from, messagingServiceSid } = settings
  const { ask, notUnderstood, providerWith } = createHttpProvider(
    { kind: twilio.kind, channels },
    name,
    deps,
  )
  const urlOf = (resource: 'Messages' | 'Calls') =>
    new URL(`/2010-04-01/Accounts/${accountSid}/${resource}.json`, settings.endpoint).href
  const headers = {
    authorization: authorizationOf(accountSid, authToken),
    'content-type': 'application/x-www-form-urlencoded',
    accept: 'application/json',
  }

  async function send(message: Message, signal: AbortSignal): Promise<SendResult> {
    const { country = '' } = message
    if (!hasSenderFor(from, country)) return noSender('twilio')
    const sender = from && textFor(from, country)
    const callback = callbackUrl(settings, message.noticeId)
    const isCall = message.channel === 'voice'
    const form = new URLSearchParams({
      To: message.to,
      ...(sender === undefined ? {} : { From: sender }),
      ...(callback === undefined ? {} : { StatusCallback: callback }),
      ...(isCall ? callParameters(message) : smsParameters(message, messagingServiceSid)),
    })
    const url = urlOf(isCall ? 'Calls' : 'Messages')
    const call = { method: 'POST', url, headers, body: form.toString() } as const
    const { result, answer } = await ask(call, signal)
    if (result) return result
    const sent = parseObject(answer.body)
    if (answer.status < 200 || answer.status >= 300) return resultOfError(sent?.code, answer.status)
    if (typeof sent?.sid !== 'string') return notUnderstood(answer)
    if (sent.status === 'failed' || sent.status === 'undelivered') {
      return resultOfError(sent.error_code, answer.status)
    }
    return accepted(sent.sid)
  }

  return providerWith({ send })
}
