/**
 * Turns at what only so many may use at a time. Apps share the turns, and the callers of one app share the app's: the next
 * turn goes to the app that has waited longest for one, and within it to the caller that has. So a flood from one address
 * holds up that address, and a flood at one app's page that app.
 *
 * Each app has its own room to wait. Where it is full, a caller with fewer waiting requests takes the place of the newest
 * request of the caller with the most.
 */
export interface Sharer {
  app: string
  /** An address. */
  caller: string
}

interface Waiting {
  start(): void
  refuse(): void
}

export function createTurns(options: {
  maxUnderWay: number
  /** For each app. */
  maxWaiting: number
  maxWaitMs: number
}) {
  const { maxUnderWay, maxWaiting, maxWaitMs } = options
  /** By app, then by caller. The next turn is the first one's; nothing here is empty. */
  const apps = new Map<string, Map<string, Set<Waiting>>>()
  let underWay = 0

  /** True with a turn, which must be ended; false when there was no room to wait, or no turn in time. */
  function begin({ app, caller }: Sharer): boolean | Promise<boolean> {
    if (underWay < maxUnderWay) {
      underWay += 1
      return true
    }
    const callers = apps.get(app) ?? new Map<string, Set<Waiting>>()
    const queue = callers.get(caller) ?? new Set()
    if (countOf(callers) >= maxWaiting && !makeRoom(callers, queue.size)) return false
    return new Promise((resolve) => {
      const answer = (isTurn: boolean) => {
        clearTimeout(timer)
        resolve(isTurn)
      }
      const waiting = { start: () => answer(true), refuse: () => answer(false) }
      const timer = setTimeout(() => {
        queue.delete(waiting)
        if (queue.size === 0) callers.delete(caller)
        if (callers.size === 0) apps.delete(app)
        resolve(false)
      }, maxWaitMs)
      queue.add(waiting)
      callers.set(caller, queue)
      apps.set(app, callers)
    })
  }

  function takeNext(): Waiting | undefined {
    for (const [app, callers] of apps) {
      for (const [caller, queue] of callers) {
        for (const next of queue) {
          queue.delete(next)
          moveBehind(callers, caller, queue)
          moveBehind(apps, app, callers)
          return next
        }
      }
    }
    return undefined
  }

  /** Hands the turn on. */
  function end(): void {
    const next = takeNext()
    if (next) next.start()
    else underWay -= 1
  }

  /** What the work comes to, or without a turn what `refuse` returns or throws; the work is not begun then. */
  return async function inTurn<Result>(
    sharer: Sharer,
    work: () => Promise<Result>,
    refuse: () => Result,
  ): Promise<Result> {
    if (!(await begin(sharer))) return refuse()
    try {
      return await work()
    } finally {
      end()
    }
  }
}

const countOf = (callers: ReadonlyMap<string, ReadonlySet<unknown>>) =>
  [...callers.values()].reduce((sum, { size }) => sum + size, 0)

/** False: no caller would still have as many waiting as the one that wants the room, which has so many. */
function makeRoom(callers: Map<string, Set<Waiting>>, ownSize: number): boolean {
  const greediest = [...callers.values()].reduce((most, one) => (one.size > most.size ? one : most))
  if (greediest.size <= ownSize + 1) return false
  const newest = [...greediest].at(-1)
  if (!newest) return false
  greediest.delete(newest)
  newest.refuse()
  return true
}

/** As the last one; not at all when it is empty. */
function moveBehind<Value extends { size: number }>(
  map: Map<string, Value>,
  key: string,
  value: Value,
): void {
  map.delete(key)
  if (value.size > 0) map.set(key, value)
}
