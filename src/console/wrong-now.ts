/** Faults of the service as a whole that exist now, with their beginning. The most urgent is first. */
import type { NoticeKind } from '../notice/states.ts'
import { type Delivery, lateSeconds } from './delivery-page.ts'
import type { CountedHour } from './last-day.ts'
import type { ConsoleWords } from './page.ts'

export interface Wrong {
  name: keyof ConsoleWords['wrong']
  provider?: string
  /** Share of a provider's messages that it accepted, in the last two hours. */
  percent?: number
  kind?: NoticeKind
  /** Undefined if unknown. */
  sinceMs?: number | undefined
  /** The page that shows more. */
  href: string
}

/** A provider with fewer messages is never reported. */
const leastMessages = 10
const goodShare = 0.9

export function wrongNow(
  delivery: Delivery | undefined,
  day: readonly CountedHour[],
  nowMs: number,
): Wrong[] {
  const { workers, oldestOpen = [], oldestEventSeconds = 0 } = delivery ?? {}
  const noWorker: Wrong = { name: 'noWorker', href: '/delivery' }
  const since = (seconds: number) => nowMs - seconds * 1_000
  const late = oldestOpen
    .filter(({ value }) => value >= lateSeconds)
    .map(({ kind, value }): Wrong => {
      const href = `/notices?state=pending&kind=${kind}&age=all`
      return { name: 'late', kind, sinceMs: since(value), href }
    })
  const events: Wrong = { name: 'events', sinceMs: since(oldestEventSeconds), href: '/events' }
  const dropped = droppedSince(day)
  return [
    ...(workers?.length === 0 ? [noWorker] : []),
    ...openBreakers(workers ?? [], nowMs),
    ...late,
    ...failing(day),
    ...(oldestEventSeconds >= lateSeconds ? [events] : []),
    ...(dropped === undefined
      ? []
      : [{ name: 'dropped', sinceMs: dropped, href: '#refused' } as const]),
  ]
}

function openBreakers(workers: Delivery['workers'], nowMs: number): Wrong[] {
  const open = workers.flatMap(({ providers, openForMs = {} }) =>
    Object.entries(providers).flatMap(([provider, state]) =>
      state === 'circuit' ? [{ provider, forMs: openForMs[provider] }] : [],
    ),
  )
  return [...Map.groupBy(open, ({ provider }) => provider)].map(([provider, ofWorkers]) => {
    const forMs = ofWorkers.flatMap(({ forMs }) => forMs ?? [])
    const sinceMs = forMs.length > 0 ? nowMs - Math.max(...forMs) : undefined
    return { name: 'breaker', provider, sinceMs, href: '/delivery' }
  })
}

/** Providers that accepted too few of their messages in the current hour and the one before. */
function failing(day: readonly CountedHour[]): Wrong[] {
  const names = new Set(
    day.flatMap(({ counts }) => counts?.providers.map(({ provider }) => provider) ?? []),
  )
  names.delete('')
  return [...names].flatMap((provider): Wrong[] => {
    const share = (hours: readonly CountedHour[]) => {
      const own = hours.flatMap(({ counts }) =>
        (counts?.providers ?? []).filter((one) => one.provider === provider),
      )
      const failed = own.reduce((sum, one) => sum + one.failed, 0)
      const all = own.reduce((sum, one) => sum + one.sent, failed)
      return { all, good: all > 0 ? 1 - failed / all : 1 }
    }
    const latest = share(day.slice(-2))
    if (latest.all < leastMessages || latest.good >= goodShare) return []
    // The fault began after the last good hour. Hours without messages are skipped.
    const begun = day.findLastIndex((hour) => {
      const { all, good } = share([hour])
      return all > 0 && good >= goodShare
    })
    const first = day.findIndex((hour, at) => at > begun && share([hour]).all > 0)
    const percent = Math.round(100 * latest.good)
    const sinceMs = day[first]?.atMs
    return [{ name: 'failing', provider, percent, sinceMs, href: '/notices?state=failed' }]
  })
}

/** The first of the consecutive hours with decisions that were only counted, if they reach the current or the previous hour. */
function droppedSince(day: readonly CountedHour[]): number | undefined {
  const isDropping = day.map(({ counts }) =>
    counts?.decisions.some(({ outcome, unnamed }) => outcome !== 'admitted' && unnamed > 0),
  )
  const last = isDropping.lastIndexOf(true)
  if (last < 0 || last < day.length - 2) return undefined
  const before = isDropping.findLastIndex((one, at) => at < last && !one)
  return day[before + 1]?.atMs
}
