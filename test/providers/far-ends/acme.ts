import type { Behaviour } from '../conformance.ts'
import { json, startHttpFarEnd } from './http.ts'

/** The vendor of the page of the kind `http`. Its results are codes in the body. */
export function startAcmeFarEnd(token: string) {
  return startHttpFarEnd((request, behaviour) => {
    const { method, path, headers, body } = request
    const isSent = method === 'POST' && path === '/messages'
    if (!isSent) return { ...json(404, {}), complaint: 'no such call' }
    if (headers.authorization !== `Bearer ${token}`) {
      return { ...json(401, {}), complaint: 'wrong token' }
    }
    if (headers['content-type'] !== 'application/json') {
      return { ...json(415, {}), complaint: 'not JSON' }
    }
    return answer(JSON.parse(body), behaviour)
  })
}

const codes: Partial<Record<Behaviour, number>> = {
  reject: 1001,
  invalid_recipient: 1002,
  error_inside: 1009,
}

function answer({ to, ref, ...others }: Record<string, string>, behaviour: Behaviour) {
  if ('title' in others) return { ...json(400, {}), complaint: 'a title without a text' }
  if (behaviour === 'unavailable') return json(503, { error: `${to} must wait` })
  if (behaviour === 'throttle') return json(429, { code: 1029, wait: 7 })
  const code = codes[behaviour]
  if (code) return json(200, { code, message: `no message to ${to}` })
  return {
    ...json(202, { code: 0, data: [{ id: `acme-${ref}` }] }),
    taken: { reference: String(ref), to: String(to) },
  }
}
