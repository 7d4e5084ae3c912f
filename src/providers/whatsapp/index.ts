import { createHttpClient, retryAfterMs } from '../../base/http-client.ts'
import { isObject, parseObject } from '../../base/json.ts'
import { addressBelow, createHttpProvider, type HttpAnswer } from '../http-provider.ts'
import type { Message, Provider, SendResult } from '../provider.ts'
import type { ProviderDeps, ProviderKind } from '../provider-kind.ts'
import { accepted } from '../send-result.ts'
import { findVendorTemplate } from '../vendor-templates.ts'
import { resultOfError } from './errors.ts'
import { createReceiptReader } from './receipts.ts'
import { type WhatsappSettings, whatsappSettings } from './settings.ts'

/**
 * WhatsApp by Meta's Cloud API. A business may begin a conversation only with approved templates, and for codes only with
 * authentication templates. Their text is fixed; Postern gives them the code. The notice id is the message's
 * `biz_opaque_callback_data`, which receipts repeat. Meta does not detect repeats.
 */
export const whatsapp: ProviderKind<WhatsappSettings> = {
  kind: 'whatsapp',
  channels: ['whatsapp'],
  settings: whatsappSettings,
  create: createWhatsapp,
  probe: probeWhatsapp,
  createReceiptReader,
}

/** The longest code of an authentication template. */
const longestCode = 15

const addressOf = ({ endpoint, phoneNumberId }: WhatsappSettings) =>
  addressBelow(endpoint, phoneNumberId)

async function probeWhatsapp(
  settings: WhatsappSettings,
  timeoutMs: number,
): Promise<string | undefined> {
  const client = createHttpClient(timeoutMs)
  const url = `${addressOf(settings)}?fields=id`
  const headers = { authorization: `Bearer ${settings.accessToken}` }
  const outcome = await client.call({ method: 'GET', url, headers }, new AbortController().signal)
  client.close()
  if (outcome.kind !== 'answered') return `whatsapp: ${outcome.reason}`
  if (outcome.status === 401) return 'whatsapp refuses this accessToken'
  if (outcome.status !== 200) return `whatsapp answers ${outcome.status}`
  return parseObject(outcome.body)?.id === settings.phoneNumberId
    ? undefined
    : 'whatsapp does not know this phoneNumberId'
}

function createWhatsapp(name: string, settings: WhatsappSettings, deps: ProviderDeps): Provider {
  const { ask, notUnderstood, providerWith } = createHttpProvider(whatsapp, name, deps)
  const url = `${addressOf(settings)}/messages`
  const headers = {
    authorization: `Bearer ${settings.accessToken}`,
    'content-type': 'application/json',
  }

  async function send(message: Message, signal: AbortSignal): Promise<SendResult> {
    const { code } = message.variables
    if (!code || code.length > longestCode) {
      return { kind: 'rejected', detail: 'whatsapp: an authentication template needs a code' }
    }
    const template = findVendorTemplate(settings.templates, message)
    if (!template) return { kind: 'rejected', detail: 'whatsapp: no template for this locale' }
    const parameters = [{ type: 'text', text: code }]
    const body = JSON.stringify({
      messaging_product: 'whatsapp',
      recipient_type: 'individual',
      // Without a plus, Meta may put the country of the sender before the number.
      to: message.to,
      type: 'template',
      template: {
        name: template.name,
        language: { code: template.language },
        components: [
          { type: 'body', parameters },
          { type: 'button', sub_type: 'url', index: '0', parameters },
        ],
      },
      biz_opaque_callback_data: message.noticeId,
    })
    const call = { method: 'POST', url, headers, body } as const
    const { result, answer } = await ask(call, signal, errorIn)
    if (result) return result
    const messages = parseObject(answer.body)?.messages
    const [sent] = Array.isArray(messages) ? messages : []
    if (isObject(sent) && sent.id !== undefined) return accepted(sent.id)
    return answer.status === 400 && codeIn(answer) !== undefined
      ? { kind: 'rejected', detail: `whatsapp ${codeIn(answer)}` }
      : notUnderstood(answer)
  }

  /** The number of an error decides before the HTTP status, which differs between versions of the API. */
  function errorIn(answer: HttpAnswer): SendResult | undefined {
    const code = codeIn(answer)
    if (code === undefined) return undefined
    const named = answer.headers['retry-after']
    const waitMs = named && retryAfterMs(answer.headers, deps.clock(), 1_000)
    return resultOfError(code, waitMs || undefined)
  }

  return providerWith({ send })
}

function codeIn({ body }: HttpAnswer): number | undefined {
  const error = parseObject(body)?.error
  const code = isObject(error) ? Number(error.code) : Number.NaN
  return Number.isInteger(code) ? code : undefined
}
