import { canonicalRequest, hmac } from '../canonical-request.ts'
import type { SesSettings } from './settings.ts'

/** Signature version 4 of AWS, with a key that is derived from the secret for one day, region and service. */
export function signAws4(
  call: {
    service: string
    path: string
    headers: Record<string, string>
    body: string
    atMs: number
  },
  {
    accessKeyId,
    secretAccessKey,
    region,
  }: Pick<SesSettings, 'accessKeyId' | 'secretAccessKey' | 'region'>,
) {
  const { service, path, body, atMs } = call
  const date = new Date(atMs).toISOString().replace(/[-:]|\.\d{3}/g, '')
  const headers: Record<string, string> = { ...call.headers, 'x-amz-date': date }
  const { signedHeaders, digest } = canonicalRequest(headers, body, { path })
  const scope = [date.slice(0, 8), region, service, 'aws4_request']
  const key = scope.reduce<string | Buffer>(hmac, `AWS4${secretAccessKey}`)
  const algorithm = 'AWS4-HMAC-SHA256'
  const toSign = [algorithm, date, scope.join('/'), digest].join('\n')
  const credential = `Credential=${accessKeyId}/${scope.join('/')}`
  const signature = hmac(key, toSign).toString('hex')
  const authorization = `${algorithm} ${credential}, SignedHeaders=${signedHeaders}, Signature=${signature}`
  return { ...headers, authorization }
}
