import { createHmac, hash } from 'node:crypto'

/**
 * Signature version 3 of Alibaba Cloud (ACS3-HMAC-SHA256) for a call whose parameters are all in the
 * query: the canonical request is hashed, and the hash is signed with the key itself.
 */
export interface Acs3Call {
  readonly method: 'GET' | 'POST'
  readonly host: string
  readonly query: Readonly<Record<string, string>>
  readonly action: string
  readonly version: string
  readonly nonce: string
  readonly atMs: number
}

export interface AccessKey {
  readonly accessKeyId: string
  readonly accessKeySecret: string
}

export function signAcs3(call: Acs3Call, key: AccessKey) {
  const headers: Record<string, string> = {
    host: call.host,
    'x-acs-action': call.action,
    'x-acs-content-sha256': hash('sha256', ''),
    'x-acs-date': `${new Date(call.atMs).toISOString().slice(0, 19)}Z`,
    'x-acs-signature-nonce': call.nonce,
    'x-acs-version': call.version,
  }
  const names = Object.keys(headers).sort()
  const canonicalHeaders = names.map((name) => `${name}:${headers[name]}\n`).join('')
  const signedHeaders = names.join(';')
  const query = canonicalQuery(call.query)
  const request = [
    call.method,
    '/',
    query,
    canonicalHeaders,
    signedHeaders,
    hash('sha256', ''),
  ].join('\n')
  const algorithm = 'ACS3-HMAC-SHA256'
  const signature = createHmac('sha256', key.accessKeySecret)
    .update(`${algorithm}\n${hash('sha256', request)}`)
    .digest('hex')
  const parts = `Credential=${key.accessKeyId},SignedHeaders=${signedHeaders},Signature=${signature}`
  return { headers: { ...headers, authorization: `${algorithm} ${parts}` }, query }
}

function canonicalQuery(query: Readonly<Record<string, string>>): string {
  return Object.keys(query)
    .sort()
    .map((name) => `${encode(name)}=${encode(query[name] ?? '')}`)
    .join('&')
}

/** RFC 3986: encodeURIComponent leaves five characters that must be encoded too. */
function encode(text: string): string {
  const encodeOne = (char: string) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`
  return encodeURIComponent(text).replace(/[!'()*]/g, encodeOne)
}
