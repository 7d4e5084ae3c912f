/** A host app with a span, a call in process, and requests with each header of the argument. */
import { context, trace } from '@opentelemetry/api'
import { flushSpans, traced } from '../../src/base/traces.ts'
import { createEndRequest, startRequestSpan } from '../../src/http/request-record.ts'

const headers: Record<string, string> = JSON.parse(process.argv[2] ?? '{}')
const count = { inc() {}, observe() {} }
const metrics = { requests: count, requestSeconds: count, refusalSeconds: count }
const endRequest = createEndRequest({ metrics, log: { requestFinished() {} } } as never)

function request(path: string, traceparent: string | undefined, status = 200): void {
  const given = { method: 'GET', headers: { traceparent }, protocol: 'https' } as never
  const startMs = performance.now()
  const span = startRequestSpan(path, given, startMs, true)
  endRequest(path, given, { startMs, waitedMs: 0, requestId: path, facts: {}, span }, status)
}

for (const [name, header] of Object.entries(headers)) request(name, header)
const host = trace.getTracer('host').startSpan('host')
context.with(trace.setSpan(context.active(), host), () => request('in a host', headers.usual, 503))
host.end()

const first = { kind: 'INTERNAL', mayBeFirst: true } as const
const inside = { kind: 'INTERNAL' } as const
await traced({ name: 'first', ...first }, () =>
  traced({ name: 'below', ...inside }, async () => {}),
)
await traced({ name: 'not first', ...inside }, async () => {})
const fail = () => Promise.reject(new TypeError('+8613800138000'))
await traced({ name: 'failing', ...first }, fail).catch(() => {})
await flushSpans()
