import { createHmac } from 'node:crypto'
import type { Behaviour } from '../conformance.ts'
import { json, type Refusals, startHttpFarEnd, type VendorRequest } from './http.ts'

/** The Messages API and the Calls API: 201 with a sid, or an error object with its own number. */
export function startTwilioFarEnd(accountSid: string, authToken: string) {
  return startHttpFarEnd((request, behaviour) => {
    const complaint = complaintAbout(request, accountSid, authToken)
    if (complaint) return { ...error(401, 20003, complaint), complaint }
    return answer(new URLSearchParams(request.body), behaviour, isCall(request) ? 'CA' : 'SM')
  })
}

/** X-Twilio-Signature of a callback with this form. */
export function signTwilio(authToken: string, url: string, form: URLSearchParams): string {
  // Sorted by name, then by value. No name contains the separator.
  const fields = [...new Set([...form].map((field) => field.join('\0')))].sort()
  return createHmac('sha1', authToken)
    .update([url, ...fields.map((field) => field.replace('\0', ''))].join(''))
    .digest('base64')
}

function complaintAbout(request: VendorRequest, accountSid: string, authToken: string) {
  const { method, path, headers } = request
  const credentials = Buffer.from(`${accountSid}:${authToken}`).toString('base64')
  if (method !== 'POST') return 'not a POST'
  const resources = ['Messages', 'Calls'].map(
    (resource) => `/2010-04-01/Accounts/${accountSid}/${resource}.json`,
  )
  if (!resources.includes(path)) return 'no such resource'
  if (headers.authorization !== `Basic ${credentials}`) return 'Authenticate'
  if (headers['content-type'] !== 'application/x-www-form-urlencoded') return 'not a form'
  return isCall(request) ? callComplaint(new URLSearchParams(request.body)) : undefined
}

const isCall = ({ path }: VendorRequest) => path.endsWith('/Calls.json')

function callComplaint(form: URLSearchParams) {
  const twiml = form.get('Twiml') ?? ''
  if (!/^\+\d+$/.test(form.get('From') ?? '')) return 'no caller'
  if (twiml.length > 4_000) return 'the TwiML is too long'
  const say = '<Say language="[a-z]{2,3}-[A-Z]{2}">[^<>]+</Say>'
  const pause = '<Pause length="1"/>'
  const all = `^<\\?xml version="1.0" encoding="UTF-8"\\?><Response>${pause}(${say})${pause}\\1</Response>$`
  return new RegExp(all).test(twiml) ? undefined : `not the expected TwiML: ${twiml}`
}

function answer(form: URLSearchParams, behaviour: Behaviour, prefix: 'SM' | 'CA') {
  const to = form.get('To') ?? ''
  const callback = form.get('StatusCallback')
  const reference = callback ? (new URL(callback).searchParams.get('noticeId') ?? '') : ''
  const sid = `${prefix}${Buffer.from(reference).toString('hex').slice(0, 32)}`
  const message = { sid, status: 'queued', to, body: form.get('Body'), error_code: null }
  const refusals: Refusals = {
    reject: error(400, 21617, 'The concatenated message body exceeds the 1600 character limit'),
    invalid_recipient: error(400, 21211, `The 'To' number ${to} is not a valid phone number.`),
    throttle: { ...error(429, 20429, 'Too Many Requests') },
    postpone: json(201, { ...message, status: 'failed', error_code: 30003 }),
    unavailable: error(503, 20503, `Service unavailable for ${to}`),
    error_inside: json(201, { ...message, status: 'failed', error_code: 30006 }),
  }
  const refusal = refusals[behaviour]
  if (refusal) return refusal
  return { ...json(201, message), taken: { reference, to } }
}

function error(status: number, code: number, message: string) {
  const more = `https://www.twilio.com/docs/errors/${code}`
  return json(status, { code, message, more_info: more, status })
}
