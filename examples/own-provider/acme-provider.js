/**
 * A provider kind of your own: SMS over the HTTP API of a carrier, here called Acme. docs/guides/own-provider.md explains it.
 *
 *   plugins: [./acme-provider.js]                              # in the policy file
 *   npm run conformance -- examples/own-provider/acme-provider.js           # tests every promise
 */
import { once } from 'node:events'
import * as http from 'node:http'
import * as https from 'node:https'
import { text } from 'node:stream/consumers'
import { z } from 'zod'

/** @type {import('postern').ProviderKind<{ url: string, token: string }>} */
const acme = {
  // #region settings
  kind: 'acme',
  channels: ['sms'],
  settings: z.strictObject({ url: z.url({ protocol: /^https?$/ }), token: z.string().min(1) }),
  // #endregion settings

  create(name, { url, token }, { timeoutMs, concurrency }) {
    const { Agent, request } = url.startsWith('https:') ? https : http
    const agent = new Agent({ keepAlive: true, maxSockets: concurrency })
    const closing = new AbortController()

    async function send(message, signal) {
      const { noticeId, to, text: body } = message
      const ends = AbortSignal.any([signal, closing.signal, AbortSignal.timeout(timeoutMs)])
      // #region send
      // From here on, Acme may have the message. Without an answer, the outcome is unknown.
      let mayBeTaken = false
      try {
        const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
        const call = request(url, { method: 'POST', agent, headers, signal: ends })
        call.on('socket', (socket) => {
          if (socket.connecting) socket.once('connect', () => (mayBeTaken = true))
          else mayBeTaken = true
        })
        // Without this listener, an error would end the worker. The error is caught below, or ends the body.
        call.on('error', () => {})
        // The notice id is the reference. With it, Acme recognises a message that is sent again.
        call.end(JSON.stringify({ reference: noticeId, to, body }))
        const [answer] = await once(call, 'response')
        return resultOf(answer.statusCode, answer.headers, await text(answer))
      } catch (error) {
        const kind = mayBeTaken ? 'unknown' : 'unavailable'
        return { kind, detail: `acme ${error.code ?? error.name}` }
      }
      // #endregion send
    }

    return {
      name,
      kind: 'acme',
      channels: ['sms'],
      slots: concurrency,
      send,
      async close() {
        closing.abort()
        agent.destroy()
      },
    }
  },
}

export default acme

/** The result for each answer of Acme. A detail is a code: never a number, a text or a token. */
function resultOf(status, headers, body) {
  const { id, error, scope } = parsed(body)
  const detail = `acme HTTP ${status}`
  if (error === 'bad_number') return { kind: 'invalid_recipient', detail: 'acme bad_number' }
  if (status < 300 && id) return { kind: 'accepted', messageId: id }
  if (status < 300) return { kind: 'unknown', detail: 'acme: answer not understood' }
  if (status === 400) return { kind: 'rejected', detail }
  if (status === 429) {
    const retryAfterMs = Number(headers['retry-after'] ?? 1) * 1_000
    // Only for this number: messages to other numbers are still sent.
    return { kind: scope === 'number' ? 'postponed' : 'throttled', retryAfterMs, detail }
  }
  return { kind: 'unavailable', detail }
}

function parsed(body) {
  try {
    return Object(JSON.parse(body))
  } catch {
    return {}
  }
}

const token = 'acme-test-token'

/** A simulation of Acme for `npm run conformance`. Production does not use it. */
export const conformance = {
  startFarEnd: ({ startHttpFarEnd, json }) =>
    startHttpFarEnd(({ headers, body }, behaviour) => {
      if (headers.authorization !== `Bearer ${token}`) {
        return { ...json(401, {}), complaint: 'wrong token' }
      }
      const { reference, to } = JSON.parse(body)
      switch (behaviour) {
        case 'reject':
          return json(400, { error: 'too_long' })
        case 'throttle':
          return json(429, {}, { 'retry-after': '7' })
        // #region behaviour
        case 'postpone':
          return json(429, { scope: 'number' }, { 'retry-after': '7' })
        // #endregion behaviour
        case 'unavailable':
          return json(503, {})
        case 'error_inside':
          return json(200, { error: 'bad_number' })
        default:
          return { ...json(200, { id: `acme-${reference}` }), taken: { reference, to } }
      }
    }),
  settings: (port) => ({ url: `http://127.0.0.1:${port}/messages`, token }),
  secrets: [token],
  message: {
    channel: 'sms',
    to: '+447700900123',
    template: 'captcha',
    locale: 'en',
    variables: { code: '738291' },
    text: 'Your number is 738291.',
  },
  expected: {
    accept: 'accepted',
    reject: 'rejected',
    throttle: 'throttled',
    postpone: 'postponed',
    unavailable: 'unavailable',
    error_inside: 'invalid_recipient',
    hang: 'unknown',
    refuse_talk: 'unknown',
    reset_mid_answer: 'unknown',
    lose_answer: 'unknown',
    babble: 'unknown',
  },
}
