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
  /** The time that the request has waited already. */
  waitedMs?: number
}

interface Waiting {
  start(): void
  refuse(): void
}

/** The rate of turns is an average over this many. */
const turnsOfRate = 256
/**
 * A rate without a turn of a waiting request for this time is no longer known. Otherwise a slow one could refuse all
 * requests that would wait, and so never change.
 */
const rateLastsMs = 1_000

export function createTurns(options: {
  maxUnderWay: number
  /** The most waiting requests of one app. */
  maxWaiting?: number
  maxWaitMs?: number
  /** A room is also full if, at the rate of the latest turns, a new request would wait longer than this. */
  maxExpectedMs?: number
  /**
   * The same after requests have waited for `maxExpectedMs` without a break. Then it is no burst that could be
   * answered a moment later: a long queue would only make all answers late, and its requests fill memory.
   */
  maxStandingMs?: number
}) {
  const { maxUnderWay, maxWaitMs } = options
  const { maxWaiting = Number.POSITIVE_INFINITY, maxExpectedMs = Number.POSITIVE_INFINITY } =
    options
  const { maxStandingMs = maxExpectedMs } = options
  /** The waiting requests by app. The first entry has the next turn. No room in here is empty. */
  const rooms = new Map<string, Room>()
  const rate = createRate()
  let underWay = 0
  let waitingCount = 0
  /** Since then requests have waited without a break. */
  let crowdedSinceMs = 0
  const hasTurn = () => underWay < maxUnderWay

  /** True: the request has a turn and must end it. False: there was no room to wait, or no turn in time. */
  function begin({ app, caller, waitedMs = 0 }: Sharer): boolean | Promise<boolean> {
    if (waitingCount === 0 && hasTurn()) {
      underWay += 1
      return true
    }
    const room = rooms.get(app) ?? createRoom()
    if (isFull(room, waitedMs)) {
      const replaced = room.takeNewestOfGreediest(caller)
      if (!replaced) return false
      waitingCount -= 1
      replaced.refuse()
    }
    return new Promise((resolve) => {
      const answer = (isTurn: boolean) => {
        clearTimeout(timer)
        resolve(isTurn)
      }
      const waiting = { start: () => answer(true), refuse: () => answer(false) }
      const leave = () => {
        room.remove(caller, waiting)
        waitingCount -= 1
        if (room.size() === 0) rooms.delete(app)
        resolve(false)
      }
      const timer =
        maxWaitMs === undefined ? undefined : setTimeout(leave, Math.max(0, maxWaitMs - waitedMs))
      room.add(caller, waiting)
      if (waitingCount === 0) {
        crowdedSinceMs = performance.now()
        rate.rest()
      }
      waitingCount += 1
      rooms.set(app, room)
    })
  }

  function isFull(room: Room, waitedMs: number): boolean {
    const count = room.size() + 1
    if (count > maxWaiting) return true
    // Apps take turns, so a request waits for its room, and for as many requests of each other room at most.
    const before = Math.min(waitingCount + 1, count * Math.max(1, rooms.size))
    const expectedMs = before * rate.meanGapMs()
    if (waitedMs + expectedMs > maxExpectedMs) return true
    // With long turns of the event loop, the time before would refuse requests while nearly none wait.
    return expectedMs > maxStandingMs && performance.now() - crowdedSinceMs > maxExpectedMs
  }

  function takeNext(): Waiting | undefined {
    for (const [app, room] of rooms) {
      const next = room.takeNext()
      waitingCount -= 1
      rooms.delete(app)
      if (room.size() > 0) rooms.set(app, room)
      return next
    }
    return undefined
  }

  function end(): void {
    underWay -= 1
    while (hasTurn()) {
      const next = takeNext()
      if (!next) return
      underWay += 1
      rate.note()
      next.start()
    }
  }

  /** The result of `work`. Without a turn `work` does not start, and the result of `refuse` is used. */
  async function inTurn<Result>(
    sharer: Sharer,
    work: () => Promise<Result>,
    refuse: () => Result,
  ): Promise<Result> {
    const begun = begin(sharer)
    if (begun !== true && !(await begun)) return refuse()
    try {
      return await work()
    } finally {
      end()
    }
  }

  return Object.assign(inTurn, {
    /** True if `inTurn` would refuse the request at once. */
    wouldRefuse({ app, caller, waitedMs = 0 }: Sharer): boolean {
      if (waitingCount === 0 && hasTurn()) return false
      const room = rooms.get(app) ?? emptyRoom
      return isFull(room, waitedMs) && !room.hasGreedierThan(caller)
    },
    hasWaiting: (): boolean => waitingCount > 0,
  })
}

/** The mean time between two turns while requests wait. 0 while it is not known. */
function createRate() {
  let meanGapMs = 0
  let count = 0
  let lastMs: number | undefined
  let notedAtMs = Number.NEGATIVE_INFINITY
  return {
    meanGapMs(): number {
      if (performance.now() - notedAtMs >= rateLastsMs) {
        meanGapMs = 0
        count = 0
      }
      return meanGapMs
    },
    /** No request waited until now, so the time since the latest turn is no gap. */
    rest(): void {
      lastMs = undefined
    },
    /** A waiting request gets its turn. */
    note(): void {
      const nowMs = performance.now()
      notedAtMs = nowMs
      if (lastMs !== undefined) {
        count = Math.min(count + 1, turnsOfRate)
        meanGapMs += (nowMs - lastMs - meanGapMs) / count
      }
      lastMs = nowMs
    },
  }
}

type Room = ReturnType<typeof createRoom>

const emptyRoom = createRoom()

/** The waiting requests of one app, by caller. */
function createRoom() {
  /** The first entry has the next turn. No set in here is empty. */
  const callers = new Map<string, Set<Waiting>>()
  /** The number of callers by the number of their waiting requests. */
  const callersBySize: number[] = []
  let size = 0
  let largest = 0

  /** The number of requests of one caller has changed. */
  function count(newSize: number, by: 1 | -1): void {
    size += by
    callersBySize[newSize] = (callersBySize[newSize] ?? 0) + 1
    callersBySize[newSize - by] = (callersBySize[newSize - by] ?? 0) - 1
    if (newSize > largest) largest = newSize
    while (largest > 0 && !callersBySize[largest]) largest -= 1
  }
  function remove(caller: string, waiting: Waiting): void {
    const queue = callers.get(caller)
    if (!queue?.delete(waiting)) return
    if (queue.size === 0) callers.delete(caller)
    count(queue.size, -1)
  }

  /** True if a caller without its newest request would have as many as the given caller with a new request, or more. */
  const hasGreedierThan = (caller: string) => largest > (callers.get(caller)?.size ?? 0) + 1

  return {
    size: () => size,
    hasGreedierThan,
    remove,
    add(caller: string, waiting: Waiting): void {
      const queue = callers.get(caller) ?? new Set()
      callers.set(caller, queue.add(waiting))
      count(queue.size, 1)
    },
    /** The oldest request of the caller that has waited longest. */
    takeNext(): Waiting | undefined {
      for (const [caller, queue] of callers) {
        for (const next of queue) {
          remove(caller, next)
          // Its next request waits for a turn of each other caller.
          if (callers.delete(caller)) callers.set(caller, queue)
          return next
        }
      }
      return undefined
    },
    /**
     * Removes the newest request of the caller with the most. Returns undefined, and removes none, if that caller would
     * then have fewer than the given caller with a new request.
     */
    takeNewestOfGreediest(caller: string): Waiting | undefined {
      if (!hasGreedierThan(caller)) return undefined
      for (const [greediest, queue] of callers) {
        if (queue.size < largest) continue
        const newest = [...queue].at(-1)
        if (newest) remove(greediest, newest)
        return newest
      }
      return undefined
    },
  }
}
