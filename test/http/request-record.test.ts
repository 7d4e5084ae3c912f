import { expect, test } from 'vitest'
import { beginRequest, createEndRequest } from '../../src/http/request-record.ts'
import { testMetrics } from '../tools/metrics.ts'

test('the log line of a request has the duration of its metric, in milliseconds', async () => {
  const metrics = testMetrics()
  const logged: number[] = []
  const log = { requestFinished: (line: { durationMs: number }) => logged.push(line.durationMs) }
  const endRequest = createEndRequest({ metrics, log: log as never })
  const request = { method: 'GET', headers: {} } as never
  const startMs = performance.now() - 5_000
  endRequest('/v1/notices/:id', request, { ...beginRequest(request), startMs }, 200)
  const text = await metrics.registry.metrics()
  const seconds = /^postern_http_request_duration_seconds_sum\{.*\} (\S+)$/m.exec(text)?.[1]
  expect(logged[0]).toBeCloseTo(Number(seconds) * 1_000, 0)
})
