import { createHmac, hash } from 'node:crypto'

/**
 * Signature TC3-HMAC-SHA256 of Tencent Cloud. The canonical request is hashed. The hash is signed with a key that is
 * derived from the secret for one day and one service.
 */
export interface Tc3Call {
  readonly host: string
  readonly service: string
  readonly action: string
  readonly body: string
  readonly atMs: number
  readonly contentType: string
}

export interface SecretKey {
  readonly secretId: string
  readonly secretKey: string
}

export function signTc3(call: Tc3Call, key: SecretKey): string {
  const timestamp = Math.floor(call.atMs / 1_000)
  const day = new Date(timestamp * 1_000).toISOString().slice(0, 10)
  const signedHeaders = 'content-type;host;x-tc-action'
  const canonicalHeaders =
    `content-type:${call.contentType}\n` +
    `host:${call.host}\n` +
    `x-tc-action:${call.action.toLowerCase()}\n`
  const request = [
    'POST',
    '/',
    '',
    canonicalHeaders,
    signedHeaders,
    hash('sha256', call.body),
  ].join('\n')
  const scope = `${day}/${call.service}/tc3_request`
  const toSign = `TC3-HMAC-SHA256\n${timestamp}\n${scope}\n${hash('sha256', request)}`
  const dayKey = hmac(`TC3${key.secretKey}`, day)
  const signingKey = hmac(hmac(dayKey, call.service), 'tc3_request')
  const signature = hmac(signingKey, toSign).toString('hex')
  const credential = `Credential=${key.secretId}/${scope}`
  return `TC3-HMAC-SHA256 ${credential}, SignedHeaders=${signedHeaders}, Signature=${signature}`
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
