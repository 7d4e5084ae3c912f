import { canonicalRequest, hmac } from '../canonical-request.ts'
import type { TencentSettings } from './settings.ts'

/** Signature TC3-HMAC-SHA256 of Tencent Cloud, with a key that is derived from the secret for one day and service. */
export function signTc3(
  call: { service: string; headers: Record<string, string>; body: string; atMs: number },
  { secretId, secretKey }: Pick<TencentSettings, 'secretId' | 'secretKey'>,
): string {
  const { service, headers, body, atMs } = call
  const { signedHeaders, digest } = canonicalRequest(headers, body)
  const scope = [new Date(atMs).toISOString().slice(0, 10), service, 'tc3_request']
  const key = scope.reduce<string | Buffer>(hmac, `TC3${secretKey}`)
  const algorithm = 'TC3-HMAC-SHA256'
  const toSign = [algorithm, Math.floor(atMs / 1_000), scope.join('/'), digest].join('\n')
  const credential = `Credential=${secretId}/${scope.join('/')}`
  const signature = hmac(key, toSign).toString('hex')
  return `${algorithm} ${credential}, SignedHeaders=${signedHeaders}, Signature=${signature}`
}
