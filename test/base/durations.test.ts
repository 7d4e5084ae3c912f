import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatDuration, inRoughUnits, parseDurationMs } from '../../src/base/durations.ts'

describe('parseDurationMs', () => {
  test.each([
    ['500ms', 500],
    ['60s', 60_000],
    ['5m', 300_000],
    ['1h', 3_600_000],
    ['7d', 604_800_000],
    ['3650d', 315_360_000_000],
  ])('%s is %i ms', (text, durationMs) => {
    expect(parseDurationMs(text)).toBe(durationMs)
  })

  test.each([
    ...['', '0s', '00s', '05m', '-1s', '+1s', '1.5s', '1e3ms', '0x10s', '5', 'm', '5 m', ' 5m'],
    ...['5m ', '5m\n', '5M', '1h30m', '5min', '５m', '3651d', '999999999999d', '1_000ms'],
  ])('%j is no duration', (text) => {
    expect(parseDurationMs(text)).toBe(undefined)
  })
})

test('formatDuration: its text is read back as the same time, in the largest exact unit', () => {
  expect(formatDuration(300_000)).toBe('5m')
  expect(formatDuration(86_400_000)).toBe('1d')
  expect(formatDuration(1_500)).toBe('1500ms')
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 315_360_000_000 }), (durationMs) => {
      expect(parseDurationMs(formatDuration(durationMs))).toBe(durationMs)
    }),
  )
})

test.each([
  [1, { count: 1, unit: 's' }],
  [41_000, { count: 41, unit: 's' }],
  [119_999, { count: 120, unit: 's' }],
  [120_001, { count: 3, unit: 'm' }],
  [7_200_000, { count: 2, unit: 'h' }],
  [172_800_000, { count: 2, unit: 'd' }],
] as const)(
  'inRoughUnits: %i ms, two of a unit at least, and rounded up',
  (durationMs, expected) => {
    expect(inRoughUnits(durationMs)).toEqual(expected)
  },
)
