import { createHash, createHmac } from 'node:crypto'
import type { Behaviour } from '../conformance.ts'
import { json, type Refusals, startHttpFarEnd, type VendorRequest } from './http.ts'

/** SendEmail of SES's API v2: checks the signature from the request itself, and names errors in a header. */
export async function startSesFarEnd(key: { id: string; secret: string }) {
  const mails: string[] = []
  const farEnd = await startHttpFarEnd((request, behaviour) => {
    const complaint = complaintAbout(request, key)
    if (complaint) return { ...failed(403, 'SignatureDoesNotMatchException'), complaint }
    return answer(JSON.parse(request.body), behaviour)
  })

  // biome-ignore lint/suspicious/noExplicitAny: JSON of the request
  function answer(asked: any, behaviour: Behaviour) {
    const refusals: Refusals = {
      reject: failed(400, 'MessageRejected'),
      throttle: failed(429, 'TooManyRequestsException'),
      unavailable: failed(503, 'ServiceUnavailable'),
      error_inside: failed(400, 'SendingPausedException:http://internal.amazon.com/coral/'),
    }
    const refusal = refusals[behaviour]
    if (refusal) return refusal
    const [to] = asked.Destination.ToAddresses
    const reference = asked.EmailTags[0].Value
    mails.push(Buffer.from(asked.Content.Raw.Data, 'base64').toString())
    return { ...json(200, { MessageId: `0100-${reference}` }), taken: { reference, to } }
  }

  return Object.assign(farEnd, { mails })
}

function failed(status: number, type: string) {
  return json(status, { message: 'no' }, { 'x-amzn-errortype': type })
}

function complaintAbout(
  { headers, method, path, body }: VendorRequest,
  key: { id: string; secret: string },
) {
  const match =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([a-z0-9-]+)\/ses\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
      String(headers.authorization),
    )
  if (!match) return 'no AWS4 authorization'
  const [, credential, day = '', region = '', signedHeaders = '', signature] = match
  if (credential !== key.id) return 'another key'
  if (path !== '/v2/email/outbound-emails') return 'another path'
  const date = String(headers['x-amz-date'])
  if (!date.startsWith(day)) return 'another day'
  const names = signedHeaders.split(';')
  if (!names.includes('host') || !names.includes('x-amz-date')) return 'host or date is not signed'
  const lines = names.map((name) => `${name}:${String(headers[name]).trim()}\n`).join('')
  const canonical = `${method}\n${path}\n\n${lines}\n${signedHeaders}\n${sha256(body)}`
  const toSign = `AWS4-HMAC-SHA256\n${date}\n${day}/${region}/ses/aws4_request\n${sha256(canonical)}`
  const dayKey = hmac(`AWS4${key.secret}`, day)
  const signingKey = hmac(hmac(hmac(dayKey, region), 'ses'), 'aws4_request')
  return hmac(signingKey, toSign).toString('hex') === signature ? undefined : 'wrong signature'
}

const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
