import { type ByCountry, textFor } from '../base/by-country.ts'
import {
  callOnce,
  createHttpClient,
  type HttpCall,
  type HttpOutcome,
  retryAfterMs,
} from '../base/http-client.ts'
import type { ReceiptReader } from '../base/receipt.ts'
import type { Message, Provider, SendResult } from './provider.ts'
import type { ProviderKind } from './provider-kind.ts'
import { defaultRetryAfterMs } from './send-result.ts'
import { hasSenderFor, noSender } from './sender.ts'

export type HttpAnswer = Extract<HttpOutcome, { kind: 'answered' }>

type Shared = 'kind' | 'channels' | 'settings' | 'channelsOf'

/** A kind whose vendor has an HTTP API. */
interface HttpKind<Settings> extends Pick<ProviderKind<Settings>, Shared> {
  createReceiptReader?(settings: NoInfer<Settings>): ReceiptReader
  /** The setting with the senders by country. Absent: an entry serves every country. */
  senderOf?(settings: Settings): ByCountry | undefined
  /** A call that shows whether the credentials are right, and the fault in its answer. */
  readonly probe?: {
    call(settings: Settings): HttpCall
    faultIn(answer: HttpAnswer, settings: Settings): string | undefined
  }
  /** The calls of one provider. `sender` is the one for the country of the message. */
  connect(
    http: Http,
    settings: Settings,
  ): Pick<Provider, 'query'> & {
    send(message: Message, signal: AbortSignal, sender: string | undefined): Promise<SendResult>
  }
}

export function defineHttpKind<Settings>({
  senderOf,
  probe,
  connect,
  ...kind
}: HttpKind<Settings>): ProviderKind<Settings> {
  return {
    ...kind,
    serves: (settings, country) => hasSenderFor(senderOf?.(settings), country),
    ...(probe
      ? {
          async probe(settings, timeoutMs) {
            const outcome = await callOnce(probe.call(settings), timeoutMs)
            return outcome.kind === 'answered'
              ? probe.faultIn(outcome, settings)
              : `${kind.kind}: ${outcome.reason}`
          },
        }
      : {}),
    create(name, settings, { timeoutMs, answerMs = timeoutMs, concurrency, clock }) {
      const client = createHttpClient(timeoutMs, { maxConnections: concurrency, answerMs })
      const { send, ...others } = connect(createHttp(kind.kind, client, clock), settings)
      const senders = senderOf?.(settings)
      return {
        name,
        kind: kind.kind,
        channels: kind.channelsOf?.(settings) ?? kind.channels,
        slots: concurrency,
        ...others,
        async send(message, signal) {
          const { country = '' } = message
          if (!hasSenderFor(senders, country)) return noSender(kind.kind)
          return send(message, signal, senders && textFor(senders, country))
        },
        close: async () => client.close(),
      }
    },
  }
}

/** The address of a resource below an endpoint, which may end with a slash. */
export const addressBelow = (endpoint: string, path: string) =>
  `${endpoint.endsWith('/') ? endpoint.slice(0, -1) : endpoint}/${path}`

/** The body of a form. Fields without a value are left out. */
export function formOf(fields: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined)
  return new URLSearchParams(
    given.map(([name, value]): [string, string] => [name, String(value)]),
  ).toString()
}

export type Http = ReturnType<typeof createHttp>

function createHttp(
  kind: string,
  client: ReturnType<typeof createHttpClient>,
  clock: () => number,
) {
  return {
    clock,

    /**
     * Makes a call, a POST by default. Returns a result, or an answer whose body must be read. `first` may make a result
     * before the status is checked.
     */
    async ask(
      call: Partial<HttpCall> & Pick<HttpCall, 'url' | 'headers'>,
      signal: AbortSignal,
      first?: (answer: HttpAnswer) => SendResult | undefined,
    ): Promise<ReturnType<typeof readTransport>> {
      const outcome = await client.call({ method: 'POST', ...call }, signal)
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
