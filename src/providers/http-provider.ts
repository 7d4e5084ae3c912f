/** Providers that are called over HTTP. */
import {
  createHttpClient,
  type HttpCall,
  type HttpOutcome,
  retryAfterMs,
} from '../base/http-client.ts'
import type { Provider, SendResult } from './provider.ts'
import type { ProviderDeps, ProviderKind } from './provider-kind.ts'
import { defaultRetryAfterMs } from './send-result.ts'

export type HttpAnswer = Extract<HttpOutcome, { kind: 'answered' }>

/** The address of a resource below an endpoint, which may end with a slash. */
export const addressBelow = (endpoint: string, path: string) =>
  `${endpoint.endsWith('/') ? endpoint.slice(0, -1) : endpoint}/${path}`

/** The common part of all HTTP kinds: a function for calls, and the members that all these providers share. */
export function createHttpProvider(
  { kind, channels }: Pick<ProviderKind, 'kind' | 'channels'>,
  name: string,
  { timeoutMs, answerMs = timeoutMs, concurrency, clock }: ProviderDeps,
) {
  const client = createHttpClient(timeoutMs, { maxConnections: concurrency, answerMs })
  return {
    /** A result, or an answer whose body must be read. `first` may make a result before the status is checked. */
    async ask(
      call: HttpCall,
      signal: AbortSignal,
      first?: (answer: HttpAnswer) => SendResult | undefined,
    ): Promise<ReturnType<typeof readTransport>> {
      const outcome = await client.call(call, signal)
      const result = outcome.kind === 'answered' && first?.(outcome)
      return result ? { result } : readTransport(outcome, kind, clock())
    },

    /**
     * The result of an answer that the vendor did not write, such as a page of a proxy. Only after a 2xx the vendor
     * may have the message.
     */
    notUnderstood: ({ status }: HttpAnswer): SendResult =>
      status >= 200 && status < 300
        ? { kind: 'unknown', detail: `${kind}: answer not understood` }
        : { kind: 'unavailable', detail: `${kind} HTTP ${status}` },

    providerWith: (methods: Pick<Provider, 'send' | 'query'>): Provider => ({
      ...{ name, kind, channels, slots: concurrency },
      ...methods,
      close: async () => client.close(),
    }),
  }
}

/**
 * The answers of gateways that passed the request on and got no answer, or none that they understand. 520 and 524 are of
 * Cloudflare (https://developers.cloudflare.com/support/troubleshooting/http-status-codes/cloudflare-5xx-errors/).
 */
const passedOn = [504, 520, 524]

/** Results that follow from the HTTP layer alone. A 5xx means that the message was not accepted, except after a gateway. */
function readTransport(
  outcome: HttpOutcome,
  label: string,
  nowMs: number,
): { result: SendResult; answer?: undefined } | { result?: undefined; answer: HttpAnswer } {
  if (outcome.kind !== 'answered') {
    const kind = outcome.kind === 'not_sent' ? 'unavailable' : 'unknown'
    return { result: { kind, detail: `${label} ${outcome.reason}` } }
  }
  const detail = `${label} HTTP ${outcome.status}`
  if (outcome.status === 429) {
    const waitMs = retryAfterMs(outcome.headers, nowMs, defaultRetryAfterMs)
    return { result: { kind: 'throttled', retryAfterMs: waitMs, detail } }
  }
  if (passedOn.includes(outcome.status)) return { result: { kind: 'unknown', detail } }
  if (outcome.status >= 500) return { result: { kind: 'unavailable', detail } }
  return { answer: outcome }
}
