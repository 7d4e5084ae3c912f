/**
 * Turns for work that only `maxUnderWay` requests may do at a time. The next turn goes to the app that has waited
 * longest, and there to the caller that has waited longest. So a flood from one address delays that address only, and
 * a flood at one app delays that app only.
 *
 * Each app has a waiting room. If the room is full, a caller with fewer waiting requests replaces the newest request
 * of the caller with the most.
 */
export interface Sharer {
  app: string
  /** An IP address. */
  caller: string
}

interface Waiting {
  start(): void
  refuse(): void
}

export function createTurns(options: {
  maxUnderWay: number
  /** The most waiting requests of one app. */
  maxWaiting: number
  maxWaitMs: number
}) {
  const { maxUnderWay, maxWaiting, maxWaitMs } = options
  /** The waiting requests by app, then by caller. The first entry has the next turn. No map or set in here is empty. */
  const apps = new Map<string, Map<string, Set<Waiting>>>()
  let underWay = 0

  /** True: the request has a turn and must end it. False: there was no room to wait, or no turn in time. */
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

  function end(): void {
    const next = takeNext()
    if (next) next.start()
    else underWay -= 1
  }

  /** The result of `work`. Without a turn `work` does not start, and the result of `refuse` is used. */
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

/**
 * Removes the newest request of the caller that has the most waiting requests. Returns false, and removes none, if that
 * caller would then have fewer than the new request's caller.
 */
function makeRoom(callers: Map<string, Set<Waiting>>, ownSize: number): boolean {
  const greediest = [...callers.values()].reduce((most, one) => (one.size > most.size ? one : most))
  if (greediest.size <= ownSize + 1) return false
  const newest = [...greediest].at(-1)
  if (!newest) return false
  greediest.delete(newest)
  newest.refuse()
  return true
}

/** Moves an entry to the end; removes an empty one. */
function moveBehind<Value extends { size: number }>(
  map: Map<string, Value>,
  key: string,
  value: Value,
): void {
  map.delete(key)
  if (value.size > 0) map.set(key, value)
}
