import { textFor } from '../../base/by-country.ts'
import { isObject, parseObject } from '../../base/json.ts'
import { measureSms } from '../../base/sms-length.ts'
import { createHttpProvider } from '../http-provider.ts'
import type { Message, Provider, SendResult } from '../provider.ts'
import type { ProviderDeps, ProviderKind } from '../provider-kind.ts'
import { secondsLeft } from '../seconds-left.ts'
import { accepted } from '../send-result.ts'
import { hasSenderFor, noSender } from '../sender.ts'
import { resultOfStatus } from './errors.ts'
import { createReceiptReader } from './receipts.ts'
import { type VonageSettings, vonageSettings } from './settings.ts'

/** SMS by Vonage's SMS API. Receipts repeat the notice id, sent as client-ref. The API does not detect repeats. */
export const vonage: ProviderKind<VonageSettings> = {
  kind: 'vonage',
  channels: ['sms'],
  settings: vonageSettings,
  serves: ({ from }, country) => hasSenderFor(from, country),
  create: createVonage,
  createReceiptReader,
}

/** The bounds of `ttl`, in seconds. */
const shortestValidSeconds = 20
const longestValidSeconds = 604_800

function createVonage(name: string, settings: VonageSettings, deps: ProviderDeps): Provider {
  const { ask, notUnderstood, providerWith } = createHttpProvider(vonage, name, deps)
  const url = new URL('/sms/json', settings.endpoint).href
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }

  async function send(message: Message, signal: AbortSignal): Promise<SendResult> {
    const from = textFor(settings.from, message.country ?? '')?.replace(/^\+/, '')
    if (from === undefined) return noSender('vonage')
    const validSeconds = secondsLeft(message, longestValidSeconds)
    const form = new URLSearchParams({
      api_key: settings.apiKey,
      api_secret: settings.apiSecret,
      from,
      to: message.to.slice(1),
      text: message.text,
      type: measureSms(message.text).encoding === 'gsm7' ? 'text' : 'unicode',
      'client-ref': message.noticeId,
      ...(validSeconds === undefined
        ? {}
        : { ttl: String(Math.max(validSeconds, shortestValidSeconds) * 1_000) }),
    })
    const call = { method: 'POST', url, headers, body: form.toString() } as const
    const { result, answer } = await ask(call, signal)
    if (result) return result
    const messages = parseObject(answer.body)?.messages
    // A long text is sent in parts, and each has its status.
    const parts = Array.isArray(messages) ? messages.filter(isObject) : []
    const sent = parts.find(({ status }) => String(status) === '0')
    if (sent) return accepted(sent['message-id'])
    return resultOfStatus(parts[0]?.status) ?? notUnderstood(answer)
  }

  return providerWith({ send })
}
