/** Durations as people write them in settings and requests: `500ms 60s 5m 1h 7d`. */
import * as z from 'zod'

const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** Ten years. A longer duration is a typing error, and Redis TTLs stay far from their limit. */
export const longestDuration = '3650d'
const maxDurationMs = 3_650 * unitMs.d

/**
 * Milliseconds of a duration such as `5m`, or undefined when `text` is not one.
 * Whole positive numbers with exactly one unit; nothing above ten years.
 */
export function parseDurationMs(text: string): number | undefined {
  const durationMs = writtenMs(text)
  return durationMs !== undefined && durationMs <= maxDurationMs ? durationMs : undefined
}

/** Whether a text is a duration, but a longer one than is possible. */
export const isTooLong = (text: string) => (writtenMs(text) ?? 0) > maxDurationMs

function writtenMs(text: string): number | undefined {
  const match = /^([1-9]\d{0,11})(ms|s|m|h|d)$/.exec(text)
  return match ? Number(match[1]) * unitMs[match[2] as keyof typeof unitMs] : undefined
}

/** Schema of a duration. The value stays as it was written. */
export const durationText = z
  .string()
  .refine((text) => !isTooLong(text), `must be at most ${longestDuration}`)
  .refine(
    (text) => isTooLong(text) || parseDurationMs(text) !== undefined,
    'must be a duration such as 500ms, 60s, 5m, 1h or 7d',
  )

/** Schema of a duration. The value becomes milliseconds. */
export const duration = durationText.transform((text) => parseDurationMs(text) as number)

type Unit = keyof typeof unitMs
const largestFirst = (Object.keys(unitMs) as Unit[]).reverse()

/** A duration as a whole number of the largest possible unit: 90 minutes, not 1.5 hours. */
export function inWholeUnits(durationMs: number): { count: number; unit: Unit } {
  const unit =
    largestFirst.find((unit) => durationMs > 0 && durationMs % unitMs[unit] === 0) ?? 'ms'
  return { count: durationMs / unitMs[unit], unit }
}

/** A duration in the largest unit of which it has two or more: 90 minutes, 3 hours. Rounded up, so never 0. */
export function inRoughUnits(durationMs: number): { count: number; unit: Exclude<Unit, 'ms'> } {
  const unit = (['d', 'h', 'm'] as const).find((unit) => durationMs >= 2 * unitMs[unit]) ?? 's'
  return { count: Math.ceil(durationMs / unitMs[unit]), unit }
}

/** The shortest exact spelling: 300000 → `5m`, 86400000 → `1d`, 1500 → `1500ms`. */
export function formatDuration(durationMs: number): string {
  const { count, unit } = inWholeUnits(durationMs)
  return `${count}${unit}`
}
