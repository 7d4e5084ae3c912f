import type { Behaviour } from '../conformance.ts'
import { json, type Refusals, startHttpFarEnd, type VendorRequest } from './http.ts'

/** The Cloud API: a message with an approved authentication template, or an error object with its own number. */
export function startWhatsappFarEnd(phoneNumberId: string, accessToken: string) {
  return startHttpFarEnd((request, behaviour) => {
    const complaint = complaintAbout(request, phoneNumberId, accessToken)
    if (complaint) return { ...error(401, 190, complaint), complaint }
    return answer(JSON.parse(request.body), behaviour)
  })
}

function complaintAbout(
  { method, path, headers, body }: VendorRequest,
  phoneNumberId: string,
  accessToken: string,
) {
  if (headers.authorization !== `Bearer ${accessToken}`) return 'Error validating access token'
  if (method !== 'POST' || path !== `/v23.0/${phoneNumberId}/messages`) return 'no such edge'
  if (headers['content-type'] !== 'application/json') return 'not JSON'
  const { messaging_product, to, type, template } = JSON.parse(body)
  if (messaging_product !== 'whatsapp' || type !== 'template') return 'not a template message'
  if (!/^\+[1-9]\d{5,14}$/.test(to)) return 'not a number'
  if (!template?.name || !template.language?.code) return 'no template'
  const [text, button] = template.components ?? []
  if (text?.type !== 'body' || text.parameters?.length !== 1) return '132000 body'
  if (button?.type !== 'button' || button.sub_type !== 'url' || button.index !== '0')
    return '132000 button'
  // The code stands in the text and behind the button.
  if (JSON.stringify(text.parameters) !== JSON.stringify(button.parameters)) return 'two codes'
  if (text.parameters[0]?.type !== 'text' || text.parameters[0].text.length > 15) return '132012'
  return undefined
}

function answer(
  { to, biz_opaque_callback_data: reference }: { to: string; biz_opaque_callback_data: string },
  behaviour: Behaviour,
) {
  const refusals: Refusals = {
    reject: error(404, 132001, `Template name does not exist for ${to}`),
    invalid_recipient: error(400, 131026, `Message undeliverable to ${to}`),
    throttle: error(429, 130429, 'Rate limit hit'),
    postpone: error(400, 131056, `Too many messages to ${to}`),
    unavailable: error(503, 2, 'Service temporarily unavailable'),
    error_inside: json(200, { error: { message: 'Access token has expired', code: 190 } }),
  }
  const refusal = refusals[behaviour]
  if (refusal) return refusal
  const contacts = [{ input: to, wa_id: to.slice(1) }]
  const messages = [{ id: `wamid.${reference}`, message_status: 'accepted' }]
  const sent = json(200, { messaging_product: 'whatsapp', contacts, messages })
  return { ...sent, taken: { reference, to } }
}

export function error(status: number, code: number, message: string) {
  const details = { messaging_product: 'whatsapp', details: message }
  return json(status, {
    error: { message: `(#${code}) ${message}`, type: 'OAuthException', code, error_data: details },
  })
}
