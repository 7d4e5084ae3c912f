import { createHash, createHmac } from 'node:crypto'
import type { Behaviour } from '../conformance.ts'
import { json, type Refusals, startHttpFarEnd, type VendorRequest } from './http.ts'

/**
 * Dysmsapi and Dypnsapi. They check signature version 3 from the request itself, and answer business errors in HTTP
 * 200 and gateway errors in 4xx. Dysmsapi keeps records that QuerySendDetails reads by day and page. It refuses a day
 * that has not begun by its clock.
 */
export async function startAliyunFarEnd(key: { id: string; secret: string }) {
  const records: {
    OutId: string
    PhoneNum: string
    SendDate: string
    SendStatus: number
    ErrCode: string
  }[] = []
  const farEnd = await startHttpFarEnd((request, behaviour) => {
    const complaint = complaintAbout(request, key)
    if (complaint) return { ...error(400, 'SignatureDoesNotMatch', complaint), complaint }
    if (request.headers['x-acs-action'] === 'QuerySendDetails') return queried(request)
    return answer(request, behaviour)
  })

  const clock = { fastMs: 0 }
  const inBeijing = () => {
    const iso = new Date(Date.now() + clock.fastMs + 8 * 3_600_000).toISOString()
    return iso.slice(0, 19).replace('T', ' ')
  }
  const dayOf = (time: string) => time.slice(0, 10).replaceAll('-', '')

  function queried({ query }: VendorRequest) {
    const date = new Date(Date.now() + clock.fastMs).toUTCString()
    if (String(query.get('SendDate')) > dayOf(inBeijing())) {
      return { ...error(200, 'isv.INVALID_PARAMETERS', 'SendDate'), headers: { date } }
    }
    const found = records.filter(
      ({ PhoneNum, SendDate }) =>
        PhoneNum === query.get('PhoneNumber') && dayOf(SendDate) === query.get('SendDate'),
    )
    const size = Number(query.get('PageSize'))
    const start = (Number(query.get('CurrentPage')) - 1) * size
    const body = {
      Code: 'OK',
      Message: 'OK',
      RequestId: 'A-1',
      TotalCount: String(found.length),
      SmsSendDetailDTOs: { SmsSendDetailDTO: found.slice(start, start + size) },
    }
    return json(200, body, { date })
  }

  function answer({ query, headers }: VendorRequest, behaviour: Behaviour) {
    const isPnvs = headers['x-acs-action'] === 'SendSmsVerifyCode'
    const to = query.get(isPnvs ? 'PhoneNumber' : 'PhoneNumbers') ?? ''
    const reference = query.get('OutId') ?? ''
    const refusals: Refusals = {
      reject: error(200, 'isv.SMS_TEMPLATE_ILLEGAL', '该账号下找不到对应模板'),
      invalid_recipient: error(200, 'isv.MOBILE_NUMBER_ILLEGAL', `${to}无效号码`),
      throttle: error(200, 'Throttling.User', 'Request was denied due to user flow control.'),
      postpone: isPnvs
        ? error(200, 'biz.FREQUENCY', 'check frequency failed')
        : error(200, 'isv.BUSINESS_LIMIT_CONTROL', '触发小时级流控Permits:5'),
      unavailable: error(503, 'ServiceUnavailable', `no service for ${to}`),
      error_inside: error(200, 'isv.OUT_OF_SERVICE', '业务停机'),
    }
    const refusal = refusals[behaviour]
    if (refusal) return refusal
    records.push({
      OutId: reference,
      PhoneNum: to,
      SendDate: inBeijing(),
      SendStatus: 1,
      ErrCode: '',
    })
    const taken = { reference, to: readNumber(to) }
    const BizId = `9^${reference}`
    const made = isPnvs ? { Success: true, Model: { BizId, OutId: reference } } : { BizId }
    return { ...json(200, { Code: 'OK', Message: 'OK', RequestId: 'A-1', ...made }), taken }
  }

  return Object.assign(farEnd, { records, clock })
}

/** Eleven digits that begin with 1 are a number of mainland China, also behind one of these prefixes. */
function readNumber(text: string): string {
  const mainland = /^(?:\+86|0086|86|\+)?(1\d{10})$/.exec(text)?.[1]
  return mainland ? `+86${mainland}` : `+${text}`
}

function error(status: number, code: string, message: string) {
  return json(status, { Code: code, Message: message, RequestId: 'A-1' })
}

/** The signature names the signed parts. Everything else is computed again from the raw request. */
function complaintAbout(request: VendorRequest, key: { id: string; secret: string }) {
  const { headers, query, method } = request
  const authorization = String(headers.authorization)
  const match =
    /^ACS3-HMAC-SHA256 Credential=([^,]+),SignedHeaders=([^,]+),Signature=([0-9a-f]{64})$/.exec(
      authorization,
    )
  if (!match) return 'no ACS3 authorization'
  const [, credential, signedHeaders = '', signature] = match
  if (credential !== key.id) return 'another key'
  const names = signedHeaders.split(';')
  for (const name of ['host', 'x-acs-action', 'x-acs-date', 'x-acs-signature-nonce']) {
    if (!names.includes(name)) return `${name} is not signed`
  }
  if (Math.abs(Date.parse(String(headers['x-acs-date'])) - Date.now()) > 900_000) return 'old date'
  const sorted = [...query.entries()].sort(([a], [b]) => (a < b ? -1 : 1))
  const canonicalQuery = sorted
    .map(([name, value]) => `${rfc3986(name)}=${rfc3986(value)}`)
    .join('&')
  const canonical =
    `${method}\n/\n${canonicalQuery}\n` +
    names.map((name) => `${name}:${String(headers[name]).trim()}\n`).join('') +
    `\n${signedHeaders}\n${sha256(request.body)}`
  const expected = createHmac('sha256', key.secret)
    .update(`ACS3-HMAC-SHA256\n${sha256(canonical)}`)
    .digest('hex')
  if (signature !== expected) return 'wrong signature'
  if (headers['x-acs-version'] !== '2017-05-25') return 'wrong version'
  return undefined
}

function rfc3986(text: string): string {
  const bytes = [...Buffer.from(text)]
  return bytes
    .map((byte) => {
      const char = String.fromCharCode(byte)
      const hex = byte.toString(16).toUpperCase().padStart(2, '0')
      return /[A-Za-z0-9_.~-]/.test(char) ? char : `%${hex}`
    })
    .join('')
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
