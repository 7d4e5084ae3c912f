import { parseObject } from '../../base/json.ts'
import { createHttpProvider } from '../http-provider.ts'
import type { Message, Provider, SendResult } from '../provider.ts'
import type { ProviderDeps, ProviderKind } from '../provider-kind.ts'
import { accepted } from '../send-result.ts'
import { composeMail, faultOfMail } from '../smtp/compose.ts'
import { resultOfError } from './errors.ts'
import { createReceiptReader } from './receipts.ts'
import { type SesSettings, sesSettings } from './settings.ts'
import { signAws4 } from './signature.ts'

/**
 * Mail by Amazon SES: SendEmail of its API v2, with the whole mail as `smtp` composes it. SES adds DKIM and replaces
 * the Message-ID, so the notice id is sent as a tag; SES repeats it in its events. SES does not detect repeated sends.
 */
export const ses: ProviderKind<SesSettings> = {
  kind: 'ses',
  channels: ['email'],
  settings: sesSettings,
  create: createSes,
  createReceiptReader,
}

const path = '/v2/email/outbound-emails'

function createSes(name: string, settings: SesSettings, deps: ProviderDeps): Provider {
  const { ask, notUnderstood, providerWith } = createHttpProvider(ses, name, deps)
  const { origin, host } = new URL(settings.endpoint)
  const { from, configurationSet } = settings

  async function send(message: Message, signal: AbortSignal): Promise<SendResult> {
    const fault = faultOfMail(message)
    if (fault) return fault
    const messageId = `<${message.noticeId}@email.amazonses.com>`
    const { bytes } = await composeMail(message, { from, messageId })
    const body = JSON.stringify({
      Destination: { ToAddresses: [message.to] },
      Content: { Raw: { Data: bytes.toString('base64') } },
      EmailTags: [{ Name: 'noticeId', Value: message.noticeId }],
      ConfigurationSetName: configurationSet,
    })
    const headers = { host, 'content-type': 'application/json' }
    const atMs = deps.clock()
    const signed = signAws4({ service: 'ses', path, headers, body, atMs }, settings)
    const call = { method: 'POST', url: `${origin}${path}`, headers: signed, body } as const
    const { result, answer } = await ask(call, signal)
    if (result) return result
    const sent = parseObject(answer.body)
    if (answer.status >= 300) {
      return resultOfError(answer.headers['x-amzn-errortype'] ?? sent?.__type, answer.status)
    }
    return typeof sent?.MessageId === 'string' ? accepted(sent.MessageId) : notUnderstood(answer)
  }

  return providerWith({ send })
}
