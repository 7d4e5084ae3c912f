import { createHmac } from 'node:crypto'
import type { Behaviour } from '../conformance.ts'
import { json, type Refusals, startHttpFarEnd, type VendorRequest } from './http.ts'

/** The carrier service of an operator. It checks the Standard Webhooks signature with its own code. */
export function startWebhookFarEnd(secret: string) {
  return startHttpFarEnd((request, behaviour) => {
    const complaint = complaintAbout(request, secret)
    if (complaint) return { ...json(401, { error: complaint }), complaint }
    return answer(request, behaviour)
  })
}

function complaintAbout({ method, headers, body }: VendorRequest, secret: string) {
  if (method !== 'POST') return 'not a POST'
  if (headers['content-type'] !== 'application/json') return 'not JSON'
  const id = String(headers['webhook-id'])
  const timestamp = String(headers['webhook-timestamp'])
  if (Math.abs(Date.now() / 1_000 - Number(timestamp)) > 300) return 'old timestamp'
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const hmac = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  if (headers['webhook-signature'] !== `v1,${hmac}`) return 'wrong signature'
  if (JSON.parse(body).noticeId !== id) return 'webhook-id is not the notice id'
  return undefined
}

function answer({ body }: VendorRequest, behaviour: Behaviour) {
  const { noticeId, to } = JSON.parse(body)
  const refusals: Refusals = {
    reject: json(422, { error: `no template for ${to}` }),
    throttle: json(429, {}, { 'retry-after': '7' }),
    postpone: json(429, { about: 'recipient' }, { 'retry-after': '7' }),
    unavailable: json(503, { error: `${to} must wait` }),
    error_inside: json(409, { error: 'not like this' }),
  }
  const refusal = refusals[behaviour]
  if (refusal) return refusal
  return { ...json(200, { id: `carrier-${noticeId}` }), taken: { reference: noticeId, to } }
}
