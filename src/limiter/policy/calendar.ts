import { Cron } from 'croner'

export type Calendar = ReturnType<typeof createCalendar>

/** As long as a period may be: the last one of an expression has no end, and a hold must stay a whole number. */
const centuryMs = 100 * 365 * 86_400_000

/** Periods from one firing of a cron expression (inclusive) to the next (exclusive), whatever the clocks do. */
export function createCalendar(cron: string, timezone: string) {
  const firings = new Cron(cron, { timezone, paused: true })
  let period = compute(Date.now())

  function compute(atMs: number) {
    // `previousRuns` looks strictly before its reference, and a firing at `atMs` begins the period.
    const [startsAt] = firings.previousRuns(1, new Date(atMs + 1))
    const endsAt = firings.nextRun(new Date(atMs))?.getTime() ?? Number.POSITIVE_INFINITY
    return { startsAt: startsAt?.getTime() ?? 1, endsAt: Math.min(endsAt, atMs + centuryMs) }
  }

  return {
    /** The period that holds `atMs`; cheap while that is the one asked for last. */
    periodAt(atMs: number) {
      if (atMs < period.startsAt || atMs >= period.endsAt) period = compute(atMs)
      return period
    },
    /** The one asked for last. */
    latest: () => period,
  }
}
