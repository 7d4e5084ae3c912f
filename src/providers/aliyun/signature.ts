import { hash } from 'node:crypto'
import { canonicalRequest, hmac } from '../canonical-request.ts'
import type { AliyunSettings } from './settings.ts'

export type AccessKey = Pick<AliyunSettings, 'accessKeyId' | 'accessKeySecret'>

interface Acs3Call {
  host: string
  query: Record<string, string>
  action: string
  version: string
  nonce: string
  atMs: number
}

/** Signature version 3 of Alibaba Cloud for a POST whose parameters are all in the query. It derives no key. */
export function signAcs3(call: Acs3Call, { accessKeyId, accessKeySecret }: AccessKey) {
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
    .map((name) => `${encode(name)}=${encode(call.query[name] ?? '')}`)
    .join('&')
  const { signedHeaders, digest } = canonicalRequest(headers, '', { query })
  const algorithm = 'ACS3-HMAC-SHA256'
  const signature = hmac(accessKeySecret, `${algorithm}\n${digest}`).toString('hex')
  const parts = `Credential=${accessKeyId},SignedHeaders=${signedHeaders},Signature=${signature}`
  return { headers: { ...headers, authorization: `${algorithm} ${parts}` }, query }
}

/** RFC 3986: encodeURIComponent leaves five characters that must be encoded too. */
function encode(text: string): string {
  const encodeOne = (char: string) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`
  return encodeURIComponent(text).replace(/[!'()*]/g, encodeOne)
}
