import { randomUUID } from 'node:crypto'
import { parseObject } from '../../base/json.ts'
import type { createHttpProvider } from '../http-provider.ts'
import { resultOfCode } from './errors.ts'
import { type AccessKey, signAcs3 } from './signature.ts'

/**
 * Signed calls to Dysmsapi or Dypnsapi. A call returns the object in the answer, or a result if there is none or if it is
 * an error. Both have Aliyun's time if it is known.
 */
export function createAliyunCall(
  { ask, notUnderstood }: Pick<ReturnType<typeof createHttpProvider>, 'ask' | 'notUnderstood'>,
  settings: AccessKey & { readonly endpoint: string },
  clock: () => number,
) {
  const { origin, host } = new URL(settings.endpoint)

  return async (action: string, query: Record<string, string>, signal: AbortSignal) => {
    const method = 'POST'
    const request = { host, query, action, version: '2017-05-25' }
    const signed = signAcs3({ ...request, atMs: clock(), nonce: randomUUID() }, settings)
    const url = `${origin}/?${signed.query}`
    const { headers } = signed
    const { result, answer } = await ask({ method, url, headers, body: '' }, signal)
    if (result) return { result }
    const object = parseObject(answer.body)
    const atMs = Date.parse(answer.headers.date ?? '')
    if (object?.Code === 'OK') return { answer: object, atMs }
    return { result: resultOfCode(object?.Code, object?.Message) ?? notUnderstood(answer), atMs }
  }
}
