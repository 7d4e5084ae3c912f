import { createHmac, hash } from 'node:crypto'

/** The form of a POST whose hash Alibaba Cloud, AWS and Tencent Cloud sign. Names of headers are in lower case. */
export function canonicalRequest(
  headers: Readonly<Record<string, string>>,
  body: string,
  { path = '/', query = '' } = {},
) {
  const names = Object.keys(headers).sort()
  const lines = names.map((name) => `${name}:${headers[name]}`)
  const signedHeaders = names.join(';')
  const text = ['POST', path, query, ...lines, '', signedHeaders, hash('sha256', body)].join('\n')
  return { signedHeaders, digest: hash('sha256', text) }
}

export function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
