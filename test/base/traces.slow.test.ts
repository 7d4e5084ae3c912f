/** The parts of traces that no request from outside reaches, in a process with the SDK of docs/guides/traces.md. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { startCollector } from '../tools/collector.ts'
import { repositoryRoot } from '../tools/source-files.ts'

const [traceId, spanId] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331']
const headers = {
  usual: `00-${traceId}-${spanId}-01`,
  'of a later version': `cc-${traceId}-${spanId}-01-more`,
  'of no version': `ff-${traceId}-${spanId}-01`,
  'with an empty trace': `00-${'0'.repeat(32)}-${spanId}-01`,
  'in capitals': `00-${traceId.toUpperCase()}-${spanId}-01`,
  'too long': `00-${traceId}-${spanId}-011`,
  nonsense: 'nonsense',
}

const collector = await startCollector()
const at = (path: string) => join(repositoryRoot, path)
const traces = pathToFileURL(at('examples/traces/traces.mjs')).href
const program = [at('test/base/traced-program.ts'), JSON.stringify(headers)]
await promisify(execFile)(process.execPath, ['--import', traces, ...program], {
  env: { ...process.env, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
})
const spanOf = (name: string) => collector.spans.find((span) => span.name === name)

test.each(Object.keys(headers))('with the SDK of examples/traces: a traceparent %s', (name) => {
  const isRead = name === 'usual' || name === 'of a later version'
  const span = spanOf(`GET ${name}`)
  expect([span?.traceId === traceId, span?.parentSpanId]).toEqual(
    isRead ? [true, spanId] : [false, undefined],
  )
})

test('in a host app with spans: below its span, with any header, and a 503 is an error', () => {
  expect(spanOf('GET in a host')).toMatchObject({
    kind: 1,
    traceId: spanOf('host')?.traceId,
    parentSpanId: spanOf('host')?.spanId,
    attributes: { 'error.type': '503' },
    status: 2,
  })
})

test('without a span above: only a span that may be the first is made', () => {
  expect(spanOf('first')?.parentSpanId).toBeUndefined()
  expect(spanOf('below')?.parentSpanId).toBe(spanOf('first')?.spanId)
  expect(spanOf('not first')).toBeUndefined()
})

test('an error: its class, and not its message, which may quote a recipient (I14)', () => {
  expect(spanOf('failing')).toMatchObject({ attributes: { 'error.type': 'TypeError' }, status: 2 })
  expect(collector.text()).not.toContain('13800138000')
})
