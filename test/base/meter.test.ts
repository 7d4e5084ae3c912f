import { expect, test, vi } from 'vitest'
import { createMeter, type Meter } from '../../src/base/meter.ts'

const sample = async ({ registry }: Meter, start: string) =>
  (await registry.metrics())
    .split('\n')
    .find((line) => line.startsWith(start))
    ?.split(' ')[1]

test('a gauge that cannot be measured now is not a number, and not what it was before', async () => {
  const meter = createMeter('api')
  const oldest = meter.measured('oldest_seconds', 'Age.', { kind: ['captcha', 'notice'] })
  const captcha = 'oldest_seconds{kind="captcha"'
  await oldest.measure(async () => [
    { kind: 'captcha', value: 7 },
    { kind: 'notice', value: 0 },
  ])
  expect(await sample(meter, captcha)).toBe('7')
  await oldest.measure(async () => {
    throw new Error('out of reach')
  })
  expect(await sample(meter, captcha)).toBe('Nan')
  await oldest.measure(async () => [{ kind: 'captcha', value: 3 }])
  expect(await sample(meter, captcha)).toBe('3')
})

test('two scrapes at once: while one measures, the other reads the last measured value', async () => {
  const meter = createMeter('api')
  const scheduled = meter.measured('scheduled_notices', 'Notices.', {})
  await scheduled.measure(async () => [{ value: 7 }])
  const reading = Promise.withResolvers<{ value: number }[]>()
  const measured = scheduled.measure(() => reading.promise)
  expect(await sample(meter, 'scheduled_notices{')).toBe('7')
  reading.resolve([{ value: 8 }])
  await measured
  expect(await sample(meter, 'scheduled_notices{')).toBe('8')
})

test('metrics of the process: the lag of the event loop, not its utilization, whose timer would never end', async () => {
  const timers = vi.spyOn(globalThis, 'setInterval')
  const { registry } = createMeter('api')
  expect(timers.mock.calls.filter(([, ms]) => (ms ?? 0) < 60_000)).toEqual([])
  timers.mockRestore()
  expect(registry.contentType).toBe('text/plain; version=0.0.4; charset=utf-8')
  const names = registry.getMetricsAsArray().map(({ name }) => name)
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
