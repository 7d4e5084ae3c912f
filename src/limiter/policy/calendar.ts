import { Cron } from 'croner'

export type Calendar = ReturnType<typeof createCalendar>

/** The longest period. The last period of an expression has no end, and a hold must be a whole number. */
const centuryMs = 100 * 365 * 86_400_000

/** Periods from one firing of a cron expression to the next, which is excluded. Summer time is respected. */
export function createCalendar(cron: string, timezone: string) {
  const firings = new Cron(cron, { timezone, paused: true })
  let period = compute(Date.now())

  function compute(atMs: number) {
    // `previousRuns` finds only firings before its argument, and a firing at `atMs` begins the period.
    const [startsAt] = firings.previousRuns(1, new Date(atMs + 1))
    const endsAt = firings.nextRun(new Date(atMs))?.getTime() ?? Number.POSITIVE_INFINITY
    return { startsAt: startsAt?.getTime() ?? 1, endsAt: Math.min(endsAt, atMs + centuryMs) }
  }

  return {
    /** The period that contains the time `atMs`. The latest result is remembered. */
    periodAt(atMs: number) {
      if (atMs < period.startsAt || atMs >= period.endsAt) period = compute(atMs)
      return period
    },
    /** The result of the latest call of `periodAt`. */
    latest: () => period,
  }
}
