import type { Behaviour } from '../conformance.ts'
import { json, type Refusals, startHttpFarEnd } from './http.ts'

/** The Gateway API: a request is opened and billed, and its one message is sent. */
export function startTelegramFarEnd(token: string) {
  /** The requests, and whether their message was sent. */
  const requests = new Map<string, boolean>()

  return startHttpFarEnd((request, behaviour) => {
    const { method, path, headers } = request
    if (method !== 'POST' || headers['content-type'] !== 'application/json') {
      return { ...no('METHOD_INVALID'), complaint: 'not a POST of JSON' }
    }
    if (headers.authorization !== `Bearer ${token}`) {
      return { ...no('ACCESS_TOKEN_INVALID'), complaint: 'wrong token' }
    }
    const asked = JSON.parse(request.body)
    switch (path) {
      case '/checkSendAbility':
        return checkSendAbility(asked, behaviour)
      case '/sendVerificationMessage':
        return sendVerificationMessage(asked, behaviour)
      case '/checkVerificationStatus': {
        const isSent = requests.get(asked.request_id)
        if (isSent === undefined) return no('REQUEST_ID_INVALID')
        const status = isSent ? { delivery_status: { status: 'sent', updated_at: 1 } } : {}
        return yes({ request_id: asked.request_id, request_cost: 0.01, ...status })
      }
      default:
        return { ...no('METHOD_NOT_FOUND'), complaint: `no method ${path}` }
    }
  }, /sendVerificationMessage/)

  function checkSendAbility({ phone_number: to }: { phone_number: string }, behaviour: Behaviour) {
    if (behaviour === 'invalid_recipient') return no('PHONE_NUMBER_NOT_AVAILABLE')
    const id = `r${requests.size + 1}`
    requests.set(id, false)
    return yes({ request_id: id, phone_number: to, request_cost: 0.01, remaining_balance: 1 })
  }

  function sendVerificationMessage(asked: Record<string, string>, behaviour: Behaviour) {
    const complaint = complaintAbout(asked)
    if (complaint) return { ...no(complaint), complaint }
    const refusals: Refusals = {
      reject: no('PAYLOAD_INVALID'),
      throttle: no('FLOOD_WAIT_7'),
      unavailable: json(503, { error: `try again for ${asked.phone_number}` }),
      error_inside: no('BALANCE_NOT_ENOUGH'),
    }
    const refusal = refusals[behaviour]
    if (refusal) return refusal
    const { request_id, phone_number: to = '', payload: reference = '' } = asked
    requests.set(request_id as string, true)
    const sent = yes({ request_id, phone_number: to, request_cost: 0, payload: reference })
    return { ...sent, taken: { reference, to } }
  }

  function complaintAbout({ request_id, phone_number, code, ttl, payload }: VendorRequestBody) {
    if (!/^\+[1-9]\d{5,14}$/.test(phone_number ?? '')) return 'PHONE_NUMBER_INVALID'
    if (requests.get(request_id ?? '') === undefined) return 'REQUEST_ID_INVALID'
    if (requests.get(request_id ?? '')) return 'MESSAGE_ALREADY_SENT'
    if (!/^\d{4,8}$/.test(code ?? '')) return 'CODE_INVALID'
    if (ttl !== undefined && !(Number(ttl) >= 30 && Number(ttl) <= 3_600)) return 'TTL_INVALID'
    return Buffer.byteLength(payload ?? '') > 128 ? 'PAYLOAD_INVALID' : undefined
  }
}

type VendorRequestBody = Record<string, string | undefined>

export const yes = (result: object) => json(200, { ok: true, result })
export const no = (error: string) => json(200, { ok: false, error })
