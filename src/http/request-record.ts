/** Counts, logs and traces each request: answered by a route of Postern, or by a plugin. */
import { randomUUID } from 'node:crypto'
import type { Request } from 'express'
import { limitableAddress } from '../base/limitable-address.ts'
import type { Log } from '../base/log.ts'
import { hasActiveSpan, inSpan, noteIn, type Span, startSpan } from '../base/traces.ts'
import { Overloaded } from '../base/unavailable.ts'
import { NoRoom } from './body.ts'
import type { HttpMetrics } from './metrics.ts'

/** Facts in a request's log line besides the route: ids and names only. */
export type Facts = Record<string, string | number>

/** The facts about one request that are known so far. */
export interface Call {
  /** Arrival of the request by `performance.now()`. */
  readonly startMs: number
  /** The time that it waited at its socket. */
  readonly waitedMs: number
  /** A stranger with a right signature, or with a token that only the sender knows. */
  isKnown?: true
  /** A preflight of a page that a key lists. */
  isOfListedPage?: true
  /** The caller's id, if it has the right form. */
  readonly requestId: string
  readonly facts: Facts
  /** A request gets a span when its key is known to be valid. */
  span?: Span
  /** The cause of a 5xx. The record of an answer with another status leaves it out. */
  failure?: unknown
  isOver?: true
}

/** The status in the record if the client left before its answer, as in nginx. */
export const clientClosed = 499

export const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

export function beginRequest({ headers }: Request, waitedMs = 0): Call {
  const startMs = performance.now() - waitedMs
  const given = headers['x-request-id'] as string | undefined
  const requestId = given && /^[A-Za-z0-9_-]{8,64}$/.test(given) ? given : randomUUID()
  return { startMs, waitedMs, requestId, facts: {} }
}

/** The address that a trusted proxy names. If that is not an address, the address of the connection. */
export const addressOf = ({ ip = '', socket }: Pick<Request, 'ip' | 'socket'>): string =>
  limitableAddress(ip) ?? limitableAddress(socket?.remoteAddress ?? '') ?? ''

export function createEndRequest({ metrics, log }: { metrics: HttpMetrics; log: Log }) {
  /** `route` is the path of the contract, never the path of the request. */
  return function endRequest(route: string, request: Request, call: Call, status: number): void {
    const { startMs, requestId, facts, span, failure } = call
    if (failure !== undefined && status >= 500) {
      if (isByLoad(failure)) {
        facts.reason = 'load'
        metrics.shed.inc({ route })
      } else inSpan(span, () => log.requestFailed(requestId, failure))
    }
    // A plugin can fail after its client has left and the request was recorded.
    if (call.isOver) return
    call.isOver = true
    const durationMs = performance.now() - startMs
    const method = knownMethods.has(request.method) ? request.method : 'other'
    metrics.requests.inc({ route, method, status: String(status) })
    metrics.requestSeconds.observe({ route }, durationMs / 1_000)
    if (status === 429) metrics.refusalSeconds.observe({}, durationMs / 1_000)
    inSpan(span, () =>
      log.requestFinished({
        requestId,
        method,
        route,
        status,
        durationMs: Math.round(durationMs * 10) / 10,
        ...facts,
      }),
    )
    if (span) endRequestSpan(span, status, facts)
  }
}

/** Refused because too many requests are under way. These come in floods and are no error. */
const isByLoad = (error: unknown) => error instanceof Overloaded || error instanceof NoRoom

/** The facts of a refusal. */
export function refusalFacts(code: string, members: Readonly<Record<string, unknown>>): Facts {
  const facts: Facts = { code }
  for (const name of ['policy', 'rule', 'retryAfterMs']) {
    if (members[name] !== undefined) facts[name] = members[name] as string | number
  }
  return facts
}

/**
 * The span of a request (OpenTelemetry's conventions for HTTP servers). It exists from the moment the key is known to be
 * valid, so a flood of strangers makes none.
 *
 * A caller can name any trace and demand that it is sampled. So only callers with a secret key are trusted with that. A
 * publishable key stands in a page, and its caller may be anyone: such a request begins a trace. The policy file can
 * trust pages too. `url.path` and the caller's address are left out: they are personal, or the caller chose them.
 *
 * `path` is the path of the contract. `startMs` is by `performance.now()`.
 */
export function startRequestSpan(
  path: string,
  request: Request,
  startMs: number,
  isTrusted: boolean,
): Span {
  const { method } = request
  const attributes = { 'http.request.method': method, 'http.route': path }
  const start = { name: `${method} ${path}`, attributes, startMs }
  // The span of a host app has dealt with the caller's trace already.
  if (hasActiveSpan()) return startSpan({ ...start, kind: 'INTERNAL' })
  const parent = isTrusted ? (request.headers.traceparent as string | undefined) : undefined
  const span = startSpan({ ...start, parent, kind: 'SERVER' })
  // Express works the scheme out at each read.
  if (span.isRecording()) span.setAttribute('url.scheme', request.protocol)
  return span
}

/** `facts` are also in the log line: ids and names. */
function endRequestSpan(
  span: Span,
  status: number,
  facts: Readonly<Record<string, string | number>>,
): void {
  if (!span.isRecording()) return
  const attributes: Record<string, string | number> = { 'http.response.status_code': status }
  for (const [name, value] of Object.entries(facts)) attributes[attributeOf(name)] = value
  noteIn(span, attributes, status >= 500 ? String(status) : undefined)
  span.end()
}

/** OpenTelemetry's spelling: `noticeId` is `postern.notice_id`. */
const attributeOf = (fact: string) =>
  `postern.${fact.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`
