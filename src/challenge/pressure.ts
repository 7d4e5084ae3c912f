/**
 * How many challenges this process has handed out to an app in the last minute, and how many times the usual
 * work a further one is. By app and not by rule: an answer opens any rule, so an attacker would take
 * the challenge of the quietest one.
 */
import { createBoundedMap } from '../base/bounded-map.ts'

const minuteMs = 60_000
/** From so many a minute on the work is doubled, and doubled again. */
const steps = [300, 1_200, 4_800]
const maxApps = 1_000

export function createPressure(now: () => number = () => performance.now()) {
  const apps = createBoundedMap<{ minute: number; count: number; before: number }>(maxApps)

  /** Counts one challenge more for the app: 1, 2, 4 or 8. */
  return function raise(app: string): number {
    const minute = Math.floor(now() / minuteMs)
    const last = apps.get(app)
    const isSame = last?.minute === minute
    const count = 1 + (isSame ? last.count : 0)
    const before = isSame ? last.before : last?.minute === minute - 1 ? last.count : 0
    apps.set(app, { minute, count, before })
    const inLastMinute = count + before * (1 - (now() % minuteMs) / minuteMs)
    return 2 ** steps.filter((step) => inLastMinute > step).length
  }
}
