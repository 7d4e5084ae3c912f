import { createHmac, hash } from 'node:crypto'

/**
 * Signature version 4 of AWS for a POST without a query. The canonical request is hashed. The hash is signed with a key
 * that is derived from the secret for one day, region and service.
 */
export interface AwsCall {
  readonly region: string
  readonly service: string
  readonly path: string
  /** All headers are signed, and `x-amz-date` too. Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly atMs: number
}

export interface AwsKey {
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

/** The headers of the call with its date and signature. */
export function signAws4(call: AwsCall, { accessKeyId, secretAccessKey }: AwsKey) {
  const date = new Date(call.atMs).toISOString().replace(/[-:]|\.\d{3}/g, '')
  const day = date.slice(0, 8)
  const headers: Record<string, string> = { ...call.headers, 'x-amz-date': date }
  const names = Object.keys(headers).sort()
  const signedHeaders = names.join(';')
  const request = [
    'POST',
    call.path,
    '',
    ...names.map((name) => `${name}:${headers[name]}`),
    '',
    signedHeaders,
    hash('sha256', call.body),
  ].join('\n')
  const scope = `${day}/${call.region}/${call.service}/aws4_request`
  const key = [day, call.region, call.service, 'aws4_request'].reduce<string | Buffer>(
    hmac,
    `AWS4${secretAccessKey}`,
  )
  const algorithm = 'AWS4-HMAC-SHA256'
  const toSign = [algorithm, date, scope, hash('sha256', request)].join('\n')
  const signature = hmac(key, toSign).toString('hex')
  const credential = `Credential=${accessKeyId}/${scope}`
  return {
    ...headers,
    authorization: `${algorithm} ${credential}, SignedHeaders=${signedHeaders}, Signature=${signature}`,
  }
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
