/**
 * The span of a request (OpenTelemetry's conventions for HTTP servers). It exists from the moment the key is known to be
 * valid, so a flood of strangers makes none.
 *
 * A caller can name any trace and demand that it is sampled. So only callers with a secret key are trusted with that. A
 * publishable key stands in a page, and its caller may be anyone: such a request begins a trace. The policy file can
 * trust pages too. `url.path` and the caller's address are left out: they are personal, or the caller chose them.
 */
import type { Request } from 'express'
import { hasActiveSpan, noteIn, type Span, startSpan } from '../base/traces.ts'

/** `path` is the path of the contract. `startMs` is by `performance.now()`. */
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
export function endRequestSpan(
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
