import type { Behaviour } from '../conformance.ts'
import { json, startHttpFarEnd } from './http.ts'

/** Vonage's SMS API: every result of a message is a status in HTTP 200, one for each part. */
export async function startVonageFarEnd({ apiKey, apiSecret }: Record<string, string>) {
  return startHttpFarEnd(({ path, body, method }, behaviour) => {
    const form = new URLSearchParams(body)
    if (method !== 'POST' || path !== '/sms/json') {
      return { ...json(404, {}), complaint: 'no such call' }
    }
    if (form.get('api_key') !== apiKey || form.get('api_secret') !== apiSecret) {
      return { ...statusOf('4', form), complaint: 'wrong credentials' }
    }
    return answer(form, behaviour)
  })
}

const statuses: Partial<Record<Behaviour, string>> = {
  reject: '12',
  invalid_recipient: '7',
  throttle: '1',
  error_inside: '9',
}

function answer(form: URLSearchParams, behaviour: Behaviour) {
  if (behaviour === 'unavailable') return json(503, { detail: `no service for ${form.get('to')}` })
  const refusal = statuses[behaviour]
  if (refusal) return statusOf(refusal, form)
  const reference = form.get('client-ref') ?? ''
  return { ...statusOf('0', form), taken: { reference, to: `+${form.get('to')}` } }
}

function statusOf(status: string, form: URLSearchParams) {
  const to = form.get('to')
  const reference = form.get('client-ref')
  const one =
    status === '0'
      ? { to, 'message-id': `0A-${reference}`, status, 'client-ref': reference }
      : { to, status, 'error-text': `no message to ${to}` }
  return json(200, { 'message-count': '1', messages: [one] })
}
