/**
 * Spans of OpenTelemetry, made with its API package alone. The operator loads an SDK before Postern
 * (docs/guides/traces.md). Without one, every function here does nothing but call the work it was given.
 *
 * A trace begins with a request, or continues the trace of the caller. It reaches the worker through the notice's row,
 * as the text of the header `traceparent` (W3C Trace Context). Only sampled spans write it. So a row without it gets no
 * spans, and a sampler that keeps one trace in a hundred fills one row in a hundred.
 *
 * Attributes are ids and names. Recipients, texts and addresses are never among them, nor are the messages of errors,
 * because those can quote them. A caller's `baggage` and `tracestate` can contain them too, so they are not passed on.
 */
import {
  type Attributes,
  type Context,
  context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import { orLate } from './deadline.ts'

export type { Span } from '@opentelemetry/api'

export interface SpanStart {
  name: string
  kind: keyof typeof SpanKind
  attributes?: Attributes
  /** A `traceparent` that becomes the parent. Without it, the parent is the active span. */
  parent?: string | null | undefined
  /** Start of the span by `performance.now()`; now if absent. */
  startMs?: number
}

/** A collector that does not answer must not delay the end of the process. */
const flushWithinMs = 1_000

// Asks for the SDK at the first span, so a host may load it after this module.
const tracer = trace.getTracer('postern')

/** The caller must end it. */
export function startSpan({ name, kind, attributes, parent, startMs }: SpanStart): Span {
  return tracer.startSpan(
    name,
    {
      kind: SpanKind[kind],
      ...(attributes ? { attributes } : {}),
      ...(startMs === undefined ? {} : { startTime: startMs }),
    },
    parent ? below(parent) : context.active(),
  )
}

/** Runs `work` with this span as the active one. Spans and log lines that `work` makes belong to it. */
export function inSpan<Result>(span: Span | undefined, work: () => Result): Result {
  return span && isSpanContextValid(span.spanContext())
    ? context.with(trace.setSpan(context.active(), span), work)
    : work()
}

/** Adds facts to the active span, if there is one. `error`: the kind of a failure, a short name. */
export function noteInSpan(attributes: Attributes, error?: string): void {
  const span = trace.getActiveSpan()
  if (span) noteIn(span, attributes, error)
}

export function noteIn(span: Span, attributes: Attributes, error?: string): void {
  span.setAttributes(attributes)
  if (error === undefined) return
  span.setAttribute('error.type', error)
  span.setStatus({ code: SpanStatusCode.ERROR })
}

/**
 * Runs `work` in a new span below `parent` or the active span. If the active span is not sampled, no span is made.
 * Without an active span, a span is made only if it may be the first of a trace.
 */
export async function traced<Result>(
  start: SpanStart & { mayBeFirst?: true },
  work: () => Promise<Result>,
): Promise<Result> {
  const above = trace.getSpanContext(context.active())
  const isWanted = start.parent || (above ? isSampled(above) : start.mayBeFirst)
  if (!isWanted) return work()
  const span = startSpan(start)
  try {
    return await inSpan(span, work)
  } catch (error) {
    noteIn(span, {}, error instanceof Error ? error.name : 'Error')
    throw error
  } finally {
    span.end()
  }
}

/** True inside a span, of Postern or of a host app. */
export const hasActiveSpan = () => trace.getActiveSpan() !== undefined

/** The active span as a `traceparent`; undefined without one, or if it is not sampled. */
export function activeTraceParent(): string | undefined {
  const span = trace.getSpanContext(context.active())
  return span && isSpanContextValid(span) && isSampled(span)
    ? `00-${span.traceId}-${span.spanId}-01`
    : undefined
}

/** The trace's id, by which a collector finds it. Undefined without a readable `traceparent`. */
export const traceIdOf = (parent: string | null) => readTraceParent(parent ?? '')?.traceId

/** The active span as headers of a request. */
export function traceHeaders(): { traceparent?: string } {
  const traceparent = activeTraceParent()
  return traceparent === undefined ? {} : { traceparent }
}

/** The active span in the names that OpenTelemetry gives to fields of log lines; empty without one. */
export function traceFields() {
  const span = trace.getSpanContext(context.active())
  return span ? { trace_id: span.traceId, span_id: span.spanId } : {}
}

const isSampled = ({ traceFlags }: SpanContext) => (traceFlags & TraceFlags.SAMPLED) !== 0

/** Sends the gathered spans, if the SDK can do that on request. Never rejects, and takes a second at most. */
export async function flushSpans(): Promise<void> {
  const provider = trace.getTracerProvider() as { getDelegate?(): { forceFlush?(): Promise<void> } }
  const flushing = provider.getDelegate?.().forceFlush?.()
  if (flushing) await orLate(flushing, flushWithinMs, () => {}).catch(() => {})
}

function below(parent: string): Context {
  const remote = readTraceParent(parent)
  return remote ? trace.setSpanContext(ROOT_CONTEXT, remote) : context.active()
}

/** Undefined for text in any other form. Later versions of the header begin with the same four parts. */
function readTraceParent(text: string): SpanContext | undefined {
  const [, traceId = '', spanId = '', flags = ''] =
    /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/.exec(text) ?? []
  const remote = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
  return isSpanContextValid(remote) ? remote : undefined
}
