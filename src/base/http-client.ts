import { Agent, type Dispatcher } from 'undici'
import { startCountdown } from './deadline.ts'
import { createGrowingBuffer } from './growing-buffer.ts'

/**
 * One HTTP call that reports whether a provider may have got the request. `not_sent` means that no byte of the request
 * was written to a ready connection. Every later failure is `lost`. undici's dispatcher reports when it begins to
 * write. `fetch` and undici's `request` can't tell an abort while connecting from an abort while waiting.
 */
export interface HttpCall {
  readonly method: 'GET' | 'POST' | 'PUT'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

type AnswerHeaders = Readonly<Record<string, string | undefined>>

export type HttpOutcome =
  | {
      readonly kind: 'answered'
      readonly status: number
      /** The first value of each header. */
      readonly headers: AnswerHeaders
      readonly body: string
    }
  | { readonly kind: 'not_sent'; readonly reason: string }
  | { readonly kind: 'lost'; readonly reason: string }

/** An answer of a provider is a few hundred bytes; a longer one comes from something else. */
const maxAnswerBytes = 256 * 1024

/** A part of an answer counts as this many bytes at least, because each costs processor time. */
const leastPartBytes = 64

/** Interim answers (1xx) that a call accepts. A server may send any number of them. */
const maxInterimAnswers = 20

/** Shorter than the keep-alive of usual servers, so that nothing is written to a closing connection. */
const idleTimeoutMs = 4_000

/**
 * A call beyond `maxConnections` waits until another call ends; its time limit includes that wait. `answerMs` replaces
 * the time limit when the request is on its way: a late answer is better than none.
 */
export function createHttpClient(
  timeoutMs: number,
  { maxConnections = 200, answerMs }: { maxConnections?: number; answerMs?: number } = {},
) {
  const agent = new Agent({
    connections: maxConnections,
    keepAliveTimeout: idleTimeoutMs,
    keepAliveMaxTimeout: idleTimeoutMs,
    connect: { timeout: timeoutMs },
    // The deadline of each call covers these phases.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  const closing = new AbortController()

  /** Never rejects. Resolves with a whole answer or a failure. */
  function call(request: HttpCall, signal: AbortSignal): Promise<HttpOutcome> {
    if (closing.signal.aborted) return Promise.resolve({ kind: 'not_sent', reason: 'closed' })
    if (signal.aborted) return Promise.resolve({ kind: 'not_sent', reason: 'aborted' })
    return new Promise((resolve) => {
      let controller: Dispatcher.DispatchController | undefined
      let status = 0
      let headers: AnswerHeaders = {}
      const body = createGrowingBuffer()
      let cost = 0
      let interimAnswers = 0
      let isEnded = false

      const abort = () => giveUp('no answer in time')
      let stopCountdown = startCountdown(timeoutMs, abort)
      signal.addEventListener('abort', abort, { once: true })
      closing.signal.addEventListener('abort', abort, { once: true })

      function end(outcome: HttpOutcome): void {
        isEnded = true
        stopCountdown()
        signal.removeEventListener('abort', abort)
        closing.signal.removeEventListener('abort', abort)
        resolve(outcome)
      }
      function giveUp(reason: string): void {
        end({ kind: controller ? 'lost' : 'not_sent', reason })
        controller?.abort(new Error(reason))
      }

      const { origin, pathname, search, ...url } = partsOf(request.url)
      agent.dispatch(
        {
          origin,
          path: `${pathname}${search}`,
          method: request.method,
          headers: { ...url.headers, ...request.headers },
          body: request.body ?? null,
        },
        {
          onRequestStart(started) {
            controller = started
            // The connection was ready only after the call had ended.
            if (isEnded) return started.abort(new Error('call ended'))
            if (answerMs === undefined) return
            stopCountdown()
            stopCountdown = startCountdown(answerMs, abort)
          },
          onResponseStart(_, statusCode, responseHeaders) {
            if (statusCode < 200) {
              interimAnswers += 1
              if (interimAnswers > maxInterimAnswers) giveUp('too many interim answers')
              return
            }
            status = statusCode
            const all = Object.entries(responseHeaders)
            headers = Object.fromEntries(all.map(([name, values]) => [name, [values].flat()[0]]))
          },
          onResponseData(_, chunk) {
            cost += Math.max(chunk.length, leastPartBytes)
            if (cost > maxAnswerBytes) giveUp('answer too large')
            else body.append(chunk)
          },
          onResponseEnd() {
            end({ kind: 'answered', status, headers, body: body.bytes().toString() })
          },
          onResponseError(_, error) {
            giveUp((error as { code?: string }).code ?? 'connection lost')
          },
        },
      )
    })
  }

  return {
    call,
    close() {
      closing.abort()
      void agent.destroy()
    },
  }
}

/** One call, over a connection that is then closed. */
export async function callOnce(call: HttpCall, timeoutMs: number): Promise<HttpOutcome> {
  const client = createHttpClient(timeoutMs)
  const outcome = await client.call(call, new AbortController().signal)
  client.close()
  return outcome
}

/** The value of `Authorization` for a login. */
export const basicLogin = (user: string, password: string) =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

/** A login in an address is sent as `Authorization: Basic`, as browsers and curl do. */
function partsOf(text: string) {
  const { origin, pathname, search, username, password } = new URL(text)
  const authorization = basicLogin(decodeURIComponent(username), decodeURIComponent(password))
  return { origin, pathname, search, headers: username || password ? { authorization } : {} }
}

/** Milliseconds of a Retry-After header in seconds or as a date; `otherwise` if the header is missing or not usable. */
export function retryAfterMs(headers: AnswerHeaders, nowMs: number, otherwise: number): number {
  const text = headers['retry-after']?.trim() ?? ''
  const waitMs = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - nowMs
  return Number.isNaN(waitMs) ? otherwise : Math.min(Math.max(waitMs, 1_000), 86_400_000)
}
