/** Signatures of requests by Alibaba Cloud, Tencent Cloud and AWS, which have one form under three names. */
import { createHmac, hash } from 'node:crypto'

/** Names of headers are in lower case. */
interface Signed {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly path?: string
  readonly query?: string
}

const hmac = (key: string | Buffer, text: string): Buffer =>
  createHmac('sha256', key).update(text).digest()

/** The header `authorization` of a POST. With a `scope`, the key is derived from the secret for that scope. */
function authorizationOf(
  algorithm: string,
  { headers, body, path = '/', query = '' }: Signed,
  key: { id: string; secret: string },
  scope?: { parts: readonly string[]; time: string },
): string {
  const names = Object.keys(headers).sort()
  const lines = names.map((name) => `${name}:${headers[name]}`)
  const signedHeaders = names.join(';')
  const text = ['POST', path, query, ...lines, '', signedHeaders, hash('sha256', body)].join('\n')
  const parts = scope?.parts ?? []
  const ofScope = scope ? [scope.time, parts.join('/')] : []
  const toSign = [algorithm, ...ofScope, hash('sha256', text)].join('\n')
  const signature = hmac(parts.reduce<string | Buffer>(hmac, key.secret), toSign).toString('hex')
  const members = [
    `Credential=${[key.id, ...parts].join('/')}`,
    `SignedHeaders=${signedHeaders}`,
    `Signature=${signature}`,
  ]
  return `${algorithm} ${members.join(scope ? ', ' : ',')}`
}

export interface AliyunKey {
  readonly accessKeyId: string
  readonly accessKeySecret: string
}

/** Signature version 3 of Alibaba Cloud for a POST whose parameters are all in the query. */
export function signAcs3(
  call: {
    host: string
    query: Readonly<Record<string, string>>
    action: string
    version: string
    nonce: string
    atMs: number
  },
  { accessKeyId, accessKeySecret }: AliyunKey,
) {
  const headers = {
    host: call.host,
    'x-acs-action': call.action,
    'x-acs-content-sha256': hash('sha256', ''),
    'x-acs-date': `${new Date(call.atMs).toISOString().slice(0, 19)}Z`,
    'x-acs-signature-nonce': call.nonce,
    'x-acs-version': call.version,
  }
  const query = Object.keys(call.query)
    .sort()
    .map((name) => `${encoded(name)}=${encoded(call.query[name] ?? '')}`)
    .join('&')
  const key = { id: accessKeyId, secret: accessKeySecret }
  const authorization = authorizationOf('ACS3-HMAC-SHA256', { headers, body: '', query }, key)
  return { headers: { ...headers, authorization }, query }
}

/** RFC 3986: encodeURIComponent leaves five characters that must be encoded too. */
const encoded = (text: string) =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )

/** Signature TC3-HMAC-SHA256 of Tencent Cloud. The key is for one day and service. */
export function signTc3(
  { service, atMs, ...signed }: Signed & { service: string; atMs: number },
  { secretId, secretKey }: { readonly secretId: string; readonly secretKey: string },
): string {
  const key = { id: secretId, secret: `TC3${secretKey}` }
  const parts = [new Date(atMs).toISOString().slice(0, 10), service, 'tc3_request']
  const time = String(Math.floor(atMs / 1_000))
  return authorizationOf('TC3-HMAC-SHA256', signed, key, { parts, time })
}

/** Signature version 4 of AWS. The key is for one day, region and service. */
export function signAws4(
  { service, atMs, ...call }: Signed & { service: string; atMs: number },
  key: { readonly accessKeyId: string; readonly secretAccessKey: string; readonly region: string },
) {
  const time = new Date(atMs).toISOString().replace(/[-:]|\.\d{3}/g, '')
  const headers = { ...call.headers, 'x-amz-date': time }
  const secret = { id: key.accessKeyId, secret: `AWS4${key.secretAccessKey}` }
  const parts = [time.slice(0, 8), key.region, service, 'aws4_request']
  const signed = { ...call, headers }
  const authorization = authorizationOf('AWS4-HMAC-SHA256', signed, secret, { parts, time })
  return { ...headers, authorization }
}
