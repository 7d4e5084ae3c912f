/**
 * Counts of the last 24 whole hours, the current one included, at a bounded price. Each hour is one statement for notices
 * and one for decisions. They run one after the other on one connection, newest hour first. Earlier hours are kept for
 * minutes, because only late receipts change them. A page waits for a moment and shows the hours counted by then.
 */
import { createBoundedMap } from '../base/bounded-map.ts'
import { orLate } from '../base/deadline.ts'
import { type HourCounts, hourMs } from '../notice/hour-counts.ts'
import type { DecisionCount } from '../support/decision-log.ts'

export interface CountedHour {
  /** The beginning of the hour. */
  atMs: number
  /** Undefined while it is being counted. */
  counts: Counts | undefined
}

interface Counts extends HourCounts {
  decisions: readonly DecisionCount[]
}

export type LastDay = ReturnType<typeof createLastDay>

const hours = 24
const patienceMs = 800
/** Most rows that still change are in the last two hours. */
const movingHours = 2
const movingFreshMs = 8_000
/** An expensive count is kept for this many times the duration of its statement. */
const keptTimes = 50
const freshMs = 10 * 60_000
/** A scope is the apps that an operator sees: every app, or one app. */
const maxScopes = 50

interface Known {
  counts: Counts
  freshUntilMs: number
}

interface Scope {
  known: Map<number, Known>
  filling?: Promise<void> | undefined
}

export function createLastDay(
  countHour: (apps: readonly string[] | undefined, fromMs: number) => Promise<Counts>,
) {
  const scopes = createBoundedMap<Scope>(maxScopes)
  /** One statement at a time, for all scopes together. */
  let turn: Promise<unknown> = Promise.resolve()

  async function fill(
    known: Scope['known'],
    apps: readonly string[] | undefined,
    wanted: number[],
  ) {
    for (const atMs of known.keys()) if (!wanted.includes(atMs)) known.delete(atMs)
    for (const [age, atMs] of wanted.toReversed().entries()) {
      if ((known.get(atMs)?.freshUntilMs ?? 0) > performance.now()) continue
      let startMs = 0
      const counting = turn.then(() => {
        startMs = performance.now()
        return countHour(apps, atMs)
      })
      turn = counting.catch(() => {})
      const counts = await counting
      const tookMs = performance.now() - startMs
      const forMs = age < movingHours ? Math.max(movingFreshMs, keptTimes * tookMs) : freshMs
      known.set(atMs, { counts, freshUntilMs: performance.now() + forMs })
    }
  }

  /** The counts of these apps, or of every app if `apps` is undefined, oldest hour first. Throws Unavailable. */
  return async function lastDay(
    apps: readonly string[] | undefined,
    nowMs: number,
  ): Promise<CountedHour[]> {
    const lastMs = nowMs - (nowMs % hourMs)
    const wanted = Array.from({ length: hours }, (_, at) => lastMs - (hours - 1 - at) * hourMs)
    const name = JSON.stringify(apps ?? null)
    const scope: Scope = scopes.get(name) ?? { known: new Map() }
    scopes.set(name, scope)
    scope.filling ??= fill(scope.known, apps, wanted).finally(() => {
      scope.filling = undefined
    })
    await orLate(scope.filling, patienceMs, () => {})
    return wanted.map((atMs) => ({ atMs, counts: scope.known.get(atMs)?.counts }))
  }
}
