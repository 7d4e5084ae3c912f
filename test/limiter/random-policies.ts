import fc from 'fast-check'
import type { RawPolicies } from '../../src/limiter/index.ts'

export type RawRule = RawPolicies[string][number]

const seconds = fc.constantFrom(5, 7, 60, 61, 300, 3_600, 86_400)
const smallLimit = fc.oneof(
  { weight: 1, arbitrary: fc.constant(0) },
  { weight: 9, arbitrary: fc.integer({ min: 1, max: 12 }) },
)
const anyLimit = fc.oneof(
  { weight: 8, arbitrary: smallLimit },
  { weight: 1, arbitrary: fc.integer({ min: 129, max: 140 }) },
)
const window = fc.tuple(anyLimit, seconds).map(([limit, s]) => `${limit} per ${s}s`)
const windowsOf = (one: fc.Arbitrary<string>) =>
  fc.uniqueArray(one, { minLength: 1, maxLength: 3, selector: (text) => text.split(' per ')[1] })
const windows = windowsOf(window)
const crons = fc.constantFrom('0 0 * * *', '30 2 * * *', '*/5 * * * *', '0 0 1 * *', '0 9 * * 1')
const zones = fc.constantFrom('UTC', 'Asia/Shanghai', 'Europe/Berlin', 'America/New_York')

const sliding = windows.map((list) => ({ sliding: list }))
const fixed = windows.map((list) => ({ fixed: list }))
const bucket = fc
  .record({
    rate: fc
      .oneof(fc.tuple(fc.integer({ min: 1, max: 12 }), seconds), fc.constant([1_000, 1]))
      .map(([limit, s]) => `${limit} per ${s}s`),
    burst: fc.oneof(
      { weight: 8, arbitrary: fc.integer({ min: 1, max: 12 }) },
      { weight: 1, arbitrary: fc.integer({ min: 129, max: 140 }) },
    ),
  })
  .map((one) => ({ bucket: one }))
const calendar = fc
  .record({ limit: anyLimit, cron: crons, timezone: zones })
  .map((one) => ({ calendar: one }))
const lockout = fc
  .record({
    limit: smallLimit,
    window: seconds.map((s) => `${s}s`),
    lock: seconds.map((s) => `${s}s`),
    growth: fc.constantFrom(1, 1, 1.5, 2),
  })
  .map((one) => ({ lockout: { ...one, maxLock: '2d' } }))

const kind = fc.oneof(
  { weight: 4, arbitrary: sliding },
  { weight: 3, arbitrary: fixed },
  { weight: 3, arbitrary: bucket },
  { weight: 3, arbitrary: lockout },
  { weight: 1, arbitrary: calendar },
)

/** Rules of one policy. All of them use the field `subject`. */
export const randomRules: fc.Arbitrary<RawRule[]> = fc
  .array(fc.tuple(kind, fc.integer({ min: 0, max: 9 }), fc.constantFrom(1, 1, 1, 2, 3)), {
    minLength: 1,
    maxLength: 4,
  })
  .map((rules) =>
    rules.map(([one, observe, permits], index) => ({
      name: `rule${index}`,
      key: '{subject}',
      ...one,
      ...(permits <= lowestLimit(one) ? { permits } : {}),
      ...(observe === 0 ? { mode: 'observe' as const } : {}),
      ...(observe === 1 ? { mode: 'challenge' as const } : {}),
    })),
  )

/** Permits above a limit are an error, except for limits of 0. */
function lowestLimit(one: Partial<Record<'sliding' | 'fixed', string[]>> & object): number {
  const limits = JSON.stringify(one).matchAll(/"(\d+) per|"(?:limit|burst)":(\d+)/g)
  return Math.min(...[...limits].map(([, a, b]) => Number(a ?? b) || Number.POSITIVE_INFINITY))
}

/** A rule with limits that only a long history reaches. */
export const rulesOfManyUses: fc.Arbitrary<RawRule[]> = fc
  .tuple(
    windowsOf(
      fc
        .tuple(fc.integer({ min: 13, max: 160 }), fc.constantFrom(300, 3_600, 86_400, 864_000))
        .map(([limit, s]) => `${limit} per ${s}s`),
    ),
    fc.constantFrom(1, 1, 2, 3),
  )
  .map(([sliding, permits]) => [{ name: 'many', key: '{subject}', sliding, permits }])
