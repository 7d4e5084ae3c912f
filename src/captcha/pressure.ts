/**
 * Difficulty multiplier of a challenge. It grows with the app's accepted answers in the last minute, because each
 * answer cost its sender work. For one caller it also grows with that caller's fetched challenges, so that collecting
 * them in advance is expensive. An app's unused challenges don't count: they are free, and one caller could make the
 * work harder for all.
 *
 * Each process counts alone. Counts are per app and not per rule. An answer is valid for every rule, so attackers would
 * fetch challenges of the rule with the fewest answers.
 */
import { createBoundedMap } from '../base/bounded-map.ts'

const minuteMs = 60_000
/** Counts per minute at which the work doubles, and doubles again. */
const steps = [300, 1_200, 4_800]
const maxApps = 1_000
const maxCallers = 20_000

export function createPressure(now: () => number = () => performance.now()) {
  const solvedOf = createLastMinute(maxApps, now)
  const fetchedBy = createLastMinute(maxCallers, now)

  return {
    /** Counts a new accepted answer of the app. */
    solved: solvedOf.add,
    /** Counts another challenge of the caller. Returns the multiplier: 1, 2, 4 or 8. */
    raise(app: string, caller: string): number {
      fetchedBy.add(caller)
      const count = Math.max(solvedOf.count(app), fetchedBy.count(caller))
      return 2 ** steps.filter((step) => count > step).length
    },
  }
}

/** Counts per key in the last minute. The previous minute counts by its remaining share. */
function createLastMinute(maxKeys: number, now: () => number) {
  const keys = createBoundedMap<{ minute: number; count: number; before: number }>(maxKeys)

  function find(key: string) {
    const minute = Math.floor(now() / minuteMs)
    const last = keys.get(key)
    if (last?.minute === minute) return last
    return { minute, count: 0, before: last?.minute === minute - 1 ? last.count : 0 }
  }

  return {
    add(key: string): void {
      const { minute, count, before } = find(key)
      keys.set(key, { minute, count: count + 1, before })
    },
    count(key: string): number {
      const { count, before } = find(key)
      return count + before * (1 - (now() % minuteMs) / minuteMs)
    },
  }
}
