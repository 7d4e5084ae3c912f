/**
 * How many times the usual work a challenge is. It grows with the answers that an app took in the last minute, which
 * cost whoever gave them their work, and for one caller with the challenges it fetched, so that none gathers them in
 * advance. Not with all that an app handed out: those are free, and one caller would make everybody work more.
 * Counted by each process. By app and not by rule: an answer opens any rule, so an attacker would take the challenge of
 * the quietest one.
 */
import { createBoundedMap } from '../base/bounded-map.ts'

const minuteMs = 60_000
/** From so many a minute on the work is doubled, and doubled again. */
const steps = [300, 1_200, 4_800]
const maxApps = 1_000
const maxCallers = 20_000

export function createPressure(now: () => number = () => performance.now()) {
  const solvedOf = createLastMinute(maxApps, now)
  const fetchedBy = createLastMinute(maxCallers, now)

  return {
    /** An answer of the app's that was given for the first time. */
    solved: solvedOf.add,
    /** Counts one challenge more for the caller: 1, 2, 4 or 8. */
    raise(app: string, caller: string): number {
      fetchedBy.add(caller)
      const count = Math.max(solvedOf.count(app), fetchedBy.count(caller))
      return 2 ** steps.filter((step) => count > step).length
    },
  }
}

/** How often something was added in the last minute, where the minute before counts by its share. */
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
