import { textFor } from '../../base/by-country.ts'
import { channels } from '../../base/channel.ts'
import { createHttpProvider } from '../http-provider.ts'
import type { Message, Provider, SendResult } from '../provider.ts'
import type { ProviderDeps, ProviderKind } from '../provider-kind.ts'
import { hasSenderFor, noSender } from '../sender.ts'
import { namedResult, otherResult } from './answers.ts'
import { createReceiptReader } from './receipts.ts'
import { createRequestOf } from './request.ts'
import { type HttpSettings, httpSettings } from './settings.ts'
import { valuesOf } from './template.ts'

/**
 * Any vendor with an HTTP API, without code: the policy file describes its request, its answers and its receipts. Whether
 * the vendor gets the notice id, and detects repeats by it, depends on the description.
 */
export const http: ProviderKind<HttpSettings> = {
  kind: 'http',
  channels,
  settings: httpSettings,
  channelsOf: (settings) => settings.channels,
  serves: ({ from }, country) => hasSenderFor(from, country),
  create: createHttp,
  createReceiptReader,
}

function createHttp(name: string, settings: HttpSettings, deps: ProviderDeps): Provider {
  const { ask, providerWith } = createHttpProvider(
    { kind: http.kind, channels: settings.channels },
    name,
    deps,
  )
  const requestOf = createRequestOf(settings)

  async function send(message: Message, signal: AbortSignal): Promise<SendResult> {
    const { country = '' } = message
    if (!hasSenderFor(settings.from, country)) return noSender('http')
    const from = settings.from && textFor(settings.from, country)
    const call = requestOf(valuesOf(message, from))
    if (!call) return { kind: 'rejected', detail: 'http: a variable would change the path' }
    const { result, answer } = await ask(call, signal, (answer) =>
      namedResult(settings, answer, deps.clock()),
    )
    return result ?? otherResult(answer)
  }

  return providerWith({ send })
}
