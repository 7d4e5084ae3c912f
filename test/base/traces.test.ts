/** Without an SDK. test/flow/traces.slow.test.ts tests with one. */
import { setImmediate } from 'node:timers/promises'
import { ProxyTracerProvider, trace } from '@opentelemetry/api'
import { afterEach, describe, expect, test } from 'vitest'
import {
  activeTraceParent,
  flushSpans,
  inSpan,
  noteInSpan,
  startSpan,
  traced,
  traceFields,
  traceHeaders,
} from '../../src/base/traces.ts'

const parent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

test('without an SDK: work runs as if there were no spans, with any parent', async () => {
  for (const start of [{ parent }, { parent: 'nonsense' }, { mayBeFirst: true as const }, {}]) {
    const seen = await traced({ name: 'work', kind: 'INTERNAL', ...start }, async () => {
      noteInSpan({ 'postern.outcome': 'accepted' }, 'unknown')
      return [traceHeaders(), traceFields(), activeTraceParent()]
    })
    expect(seen).toEqual([{}, {}, undefined])
  }
  const span = startSpan({ name: 'request', kind: 'SERVER', parent, startMs: 1 })
  expect(inSpan(span, () => traceHeaders())).toEqual({})
  await flushSpans()
})

test('an error of the work passes unchanged', async () => {
  const error = new Error('of the work')
  const work = traced({ name: 'work', kind: 'INTERNAL', parent }, () => Promise.reject(error))
  await expect(work).rejects.toBe(error)
})

describe('flushSpans', () => {
  afterEach(() => trace.disable())

  const flushWith = (forceFlush: () => Promise<void>) => {
    // Later files of this process keep its tracers, so they must do nothing.
    const idle = new ProxyTracerProvider()
    const provider = { getTracer: (name: string) => idle.getTracer(name), forceFlush }
    trace.setGlobalTracerProvider(provider)
    return flushSpans()
  }

  test('waits until the SDK has sent its spans', async () => {
    const sent = Promise.withResolvers<void>()
    let isFlushed = false
    const flushing = flushWith(() => sent.promise).then(() => {
      isFlushed = true
    })
    await setImmediate()
    expect(isFlushed).toBe(false)
    sent.resolve()
    await flushing
  })

  test('a collector that does not answer, or that fails, does not stop the end of a process', async () => {
    await flushWith(() => new Promise(() => {}))
    trace.disable()
    await flushWith(() => Promise.reject([new Error('no collector')]))
  })
})
