import { createHash, createHmac } from 'node:crypto'
import type { Behaviour } from '../conformance.ts'
import { json, type Refusals, startHttpFarEnd, type VendorRequest } from './http.ts'

/** SMS v20210111: every answer is HTTP 200, with separate errors of the call and of the number. */
export async function startTencentFarEnd(key: { id: string; secret: string }) {
  const records: {
    SessionContext: string
    PhoneNumber: string
    SerialNo: string
    UserReceiveTime: number
  }[] = []
  const farEnd = await startHttpFarEnd((request, behaviour) => {
    const complaint = complaintAbout(request, key)
    if (complaint) return { ...failed('AuthFailure.SignatureFailure'), complaint }
    const parameters = JSON.parse(request.body)
    if (request.headers['x-tc-action'] === 'PullSmsSendStatusByPhoneNumber') {
      const found = records.filter(
        ({ PhoneNumber, UserReceiveTime }) =>
          PhoneNumber === parameters.PhoneNumber && UserReceiveTime >= parameters.BeginTime,
      )
      return json(200, { Response: { PullSmsSendStatusSet: found, RequestId: 'T-1' } })
    }
    return answer(parameters, behaviour)
  })

  function answer(parameters: Record<string, string & string[]>, behaviour: Behaviour) {
    const to = parameters.PhoneNumberSet?.[0] ?? ''
    const reference = parameters.SessionContext ?? ''
    const refusals: Refusals = {
      reject: failed('FailedOperation.TemplateIncorrectOrUnapproved'),
      invalid_recipient: status(to, reference, 'InvalidParameterValue.IncorrectPhoneNumber'),
      throttle: failed('RequestLimitExceeded'),
      postpone: status(to, reference, 'LimitExceeded.PhoneNumberThirtySecondLimit'),
      unavailable: json(502, { Response: { Error: { Code: 'InternalError', Message: to } } }),
      error_inside: status(to, reference, 'FailedOperation.InsufficientBalanceInSmsPackage'),
    }
    const refusal = refusals[behaviour]
    if (refusal) return refusal
    records.push({
      SessionContext: reference,
      PhoneNumber: to,
      SerialNo: `5000:${reference}`,
      UserReceiveTime: Math.floor(Date.now() / 1_000),
    })
    return { ...status(to, reference, 'Ok', `5000:${reference}`), taken: { reference, to } }
  }

  return Object.assign(farEnd, { records })
}

function failed(code: string) {
  return json(200, { Response: { Error: { Code: code, Message: 'no' }, RequestId: 'T-1' } })
}

function status(to: string, reference: string, code: string, serialNo = '') {
  const sent = { PhoneNumber: to, SessionContext: reference, SerialNo: serialNo, Code: code }
  return json(200, { Response: { SendStatusSet: [{ ...sent, Fee: 1 }], RequestId: 'T-1' } })
}

function complaintAbout(
  { headers, method, body }: VendorRequest,
  key: { id: string; secret: string },
) {
  const match =
    /^TC3-HMAC-SHA256 Credential=([^/]+)\/(\d{4}-\d\d-\d\d)\/sms\/tc3_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/.exec(
      String(headers.authorization),
    )
  if (!match) return 'no TC3 authorization'
  const [, credential, day = '', signedHeaders = '', signature] = match
  if (credential !== key.id) return 'another key'
  const timestamp = String(headers['x-tc-timestamp'])
  if (Math.abs(Number(timestamp) * 1_000 - Date.now()) > 300_000) return 'signature expired'
  const canonicalHeaders = signedHeaders
    .split(';')
    .map((name) => `${name}:${String(headers[name]).trim().toLowerCase()}\n`)
    .join('')
  const hash = (text: string) => createHash('sha256').update(text).digest('hex')
  const canonical = `${method}\n/\n\n${canonicalHeaders}\n${signedHeaders}\n${hash(body)}`
  const toSign = `TC3-HMAC-SHA256\n${timestamp}\n${day}/sms/tc3_request\n${hash(canonical)}`
  const signingKey = [day, 'sms', 'tc3_request'].reduce<string | Buffer>(
    (previous, part) => createHmac('sha256', previous).update(part).digest(),
    `TC3${key.secret}`,
  )
  if (createHmac('sha256', signingKey).update(toSign).digest('hex') !== signature) {
    return 'wrong signature'
  }
  if (headers['x-tc-version'] !== '2021-01-11' || !headers['x-tc-region']) return 'wrong version'
  return undefined
}
