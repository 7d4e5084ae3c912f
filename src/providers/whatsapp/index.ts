import { z } from 'zod'
import { retryAfterMs } from '../../base/http-client.ts'
import { isObject, objectsIn, parseObject } from '../../base/json.ts'
import { addressBelow, defineHttpKind, type Http, type HttpAnswer } from '../http-provider.ts'
import type { Message, SendResult } from '../provider.ts'
import { accepted } from '../send-result.ts'
import { findTemplateInAnyLocale, vendorTemplates } from '../vendor-templates.ts'
import { resultOfError } from './errors.ts'
import { createReceiptReader } from './receipts.ts'

const approved = z.strictObject({
  /** The name and the language of the approved template, as Meta spells them. */
  name: z
    .string()
    .regex(/^[a-z0-9_]{1,512}$/, 'must be a name of a template, such as verification_code'),
  language: z
    .string()
    .regex(/^[a-z]{2,3}(_[A-Za-z]{2,4}){0,2}$/, 'must be a language of Meta, such as en_US'),
})

const settings = z.strictObject({
  /** The id of the sending number, not the number. */
  phoneNumberId: z
    .string()
    .regex(/^\d{1,32}$/, 'must be the id of the number, which has digits only'),
  accessToken: z.string().min(1),
  /** The secret of the app, with which Meta signs receipts. Without it, receipts are refused. */
  appSecret: z.string().min(1).optional(),
  /** The text that Meta repeats when the address for receipts is entered. */
  verifyToken: z.string().min(1).optional(),
  /** Approved authentication templates, by template and locale of Postern. */
  templates: vendorTemplates(approved),
  endpoint: z.url({ protocol: /^https?$/ }).default('https://graph.facebook.com/v23.0'),
})

type Settings = z.infer<typeof settings>

/**
 * WhatsApp by Meta's Cloud API. A business may begin a conversation only with approved templates, and for codes only with
 * authentication templates. Their text is fixed; Postern gives them the code. The notice id is the message's
 * `biz_opaque_callback_data`, which receipts repeat. Meta does not detect repeats.
 */
export const whatsapp = defineHttpKind({
  kind: 'whatsapp',
  channels: ['whatsapp'],
  settings,
  connect: connectWhatsapp,
  createReceiptReader,
  probe: {
    call: (settings) => ({
      method: 'GET',
      url: `${addressOf(settings)}?fields=id`,
      headers: { authorization: `Bearer ${settings.accessToken}` },
    }),
    faultIn({ status, body }, { phoneNumberId }) {
      if (status === 401) return 'whatsapp refuses this accessToken'
      if (status !== 200) return `whatsapp answers ${status}`
      const isKnown = parseObject(body)?.id === phoneNumberId
      return isKnown ? undefined : 'whatsapp does not know this phoneNumberId'
    },
  },
})

/** The longest code of an authentication template. */
const longestCode = 15

const addressOf = ({ endpoint, phoneNumberId }: Settings) => addressBelow(endpoint, phoneNumberId)

function connectWhatsapp({ ask, notUnderstood, clock }: Http, settings: Settings) {
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
    // Meta fixed the text, and digits are read in any language.
    const template = findTemplateInAnyLocale(settings.templates, message)
    if (!template) return { kind: 'rejected', detail: 'whatsapp: no template for this message' }
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
    const { result, answer } = await ask({ url, headers, body }, signal, errorIn)
    if (result) return result
    const [sent] = objectsIn(parseObject(answer.body)?.messages)
    if (sent?.id !== undefined) return accepted(sent.id)
    return answer.status === 400 && codeIn(answer) !== undefined
      ? { kind: 'rejected', detail: `whatsapp ${codeIn(answer)}` }
      : notUnderstood(answer)
  }

  /** The number of an error decides before the HTTP status, which differs between versions of the API. */
  function errorIn(answer: HttpAnswer): SendResult | undefined {
    const code = codeIn(answer)
    if (code === undefined) return undefined
    const named = answer.headers['retry-after']
    const waitMs = named && retryAfterMs(answer.headers, clock(), 1_000)
    return resultOfError(code, waitMs || undefined)
  }

  return { send }
}

function codeIn({ body }: HttpAnswer): number | undefined {
  const error = parseObject(body)?.error
  const code = isObject(error) ? Number(error.code) : Number.NaN
  return Number.isInteger(code) ? code : undefined
}
