import { expect, test, vi } from 'vitest'
import { createMetrics } from '../../src/base/metrics.ts'

const sample = async (metrics: ReturnType<typeof createMetrics>, start: string) =>
  (await metrics.registry.metrics())
    .split('\n')
    .find((line) => line.startsWith(start))
    ?.split(' ')[1]

test('a gauge that cannot be measured now is not a number, and not what it was before', async () => {
  const metrics = createMetrics({ process: 'api' })
  const { oldestPendingSeconds } = metrics
  const captcha = 'postern_oldest_pending_seconds{kind="captcha"'
  await oldestPendingSeconds.measure(async () => [
    { kind: 'captcha', value: 7 },
    { kind: 'notice', value: 0 },
  ])
  expect(await sample(metrics, captcha)).toBe('7')
  await oldestPendingSeconds.measure(async () => {
    throw new Error('out of reach')
  })
  expect(await sample(metrics, captcha)).toBe('Nan')
  await oldestPendingSeconds.measure(async () => [{ kind: 'captcha', value: 3 }])
  expect(await sample(metrics, captcha)).toBe('3')
})

test('two scrapes at once: while one measures, the other reads the last measured value', async () => {
  const metrics = createMetrics({ process: 'api' })
  const { scheduled } = metrics
  await scheduled.measure(async () => [{ value: 7 }])
  const reading = Promise.withResolvers<{ value: number }[]>()
  const measured = scheduled.measure(() => reading.promise)
  expect(await sample(metrics, 'postern_scheduled_notices{')).toBe('7')
  reading.resolve([{ value: 8 }])
  await measured
  expect(await sample(metrics, 'postern_scheduled_notices{')).toBe('8')
})

test('rules of a reloaded policy file stand at 0, and those that were there keep their count', async () => {
  const metrics = createMetrics({ process: 'api' })
  metrics.startRulesAtZero({ captcha: [{ name: 'ip' }] })
  metrics.rejected.inc({ policy: 'captcha', rule: 'ip' })
  metrics.startRulesAtZero({ captcha: [{ name: 'ip' }, { name: 'country' }] })
  expect(await sample(metrics, 'postern_rejected_total{policy="captcha",rule="ip"')).toBe('1')
  expect(await sample(metrics, 'postern_rejected_total{policy="captcha",rule="country"')).toBe('0')
})

test('metrics of the process: the lag of the event loop, not its utilization, whose timer would never end', async () => {
  const timers = vi.spyOn(globalThis, 'setInterval')
  const metrics = createMetrics({ process: 'api' })
  expect(timers.mock.calls.filter(([, ms]) => (ms ?? 0) < 60_000)).toEqual([])
  timers.mockRestore()
  expect(metrics.registry.contentType).toBe('text/plain; version=0.0.4; charset=utf-8')
  const names = metrics.registry.getMetricsAsArray().map(({ name }) => name)
  expect(names.filter((name) => name.startsWith('postern_nodejs_eventloop')).sort()).toEqual([
    'postern_nodejs_eventloop_lag_max_seconds',
    'postern_nodejs_eventloop_lag_mean_seconds',
    'postern_nodejs_eventloop_lag_min_seconds',
    'postern_nodejs_eventloop_lag_p50_seconds',
    'postern_nodejs_eventloop_lag_p90_seconds',
    'postern_nodejs_eventloop_lag_p99_seconds',
    'postern_nodejs_eventloop_lag_seconds',
    'postern_nodejs_eventloop_lag_stddev_seconds',
  ])
})
