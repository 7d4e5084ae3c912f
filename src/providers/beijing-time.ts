/** Chinese vendors write times of Beijing, without a time zone. */
const beijingOffsetMs = 8 * 3_600_000

/** Milliseconds of a time such as `2026-11-01 08:00:00`; undefined for other text. */
export function parseBeijingTime(text: unknown): number | undefined {
  if (typeof text !== 'string' || !/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/.test(text)) return undefined
  const atMs = Date.parse(`${text.replace(' ', 'T')}+08:00`)
  return Number.isNaN(atMs) ? undefined : atMs
}

/** `20261101`: the day in Beijing. */
export function beijingDay(atMs: number): string {
  return new Date(atMs + beijingOffsetMs).toISOString().slice(0, 10).replaceAll('-', '')
}
