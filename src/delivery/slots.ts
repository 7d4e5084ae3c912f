/**
 * The calls that one provider carries at once in this process, and the line before them.
 *
 * A provider with five connections makes the sixth call wait. That is time of ours: were it taken for
 * the provider's, a healthy one would look slow, calls would be given up that had never begun, and
 * messages would be sent twice. So this is the one place where a message waits for a provider, and
 * nothing has begun when it does: it is claimed by no worker, no clock of a call runs, no try is made.
 *
 * First come, first served, codes before bulk. The line is short: a message that finds it full makes room
 * for those of other providers and comes back when it has presumably moved on.
 */
import { createPlaces } from './places.ts'

export interface SlotRequest {
  /** Codes do not wait behind bulk. */
  isUrgent: boolean
  /** Slots it takes at once; never more than there are. */
  weight: number
  /** It gives up after this. */
  withinMs: number
  /** It has nowhere else to go, so it stays when others are sent away. */
  isPatient: boolean
}

export type Slot = { granted: true; leave(): void } | { granted: false; retryInMs: number }

interface Waiting {
  weight: number
  isPatient: boolean
  end(slot: Slot): void
}

const sentAway: Slot = { granted: false, retryInMs: 0 }

/** Longer than this a message does not stay away. */
const longestAwayMs = 60_000
const longestTimerMs = 2 ** 31 - 1

export function createSlots(count: number, maxWaiting: number) {
  const urgent: Waiting[] = []
  const bulk: Waiting[] = []
  let inUse = 0
  let isClosed = false
  /** How long a slot is usually held. */
  let usualMs = 100
  const places = createPlaces(longestAwayMs / 2)

  function grant(weight: number): Slot {
    const startMs = performance.now()
    let isLeft = false
    inUse += weight
    return {
      granted: true,
      leave() {
        if (isLeft) return
        isLeft = true
        inUse -= weight
        usualMs += (performance.now() - startMs - usualMs) / 10
        admitNext()
      },
    }
  }

  function admitNext(): void {
    for (;;) {
      const line = urgent.length > 0 ? urgent : bulk
      const [first] = line
      if (!first || inUse + first.weight > count) return
      line.shift()
      first.end(grant(first.weight))
    }
  }

  /** When the line will have moved on, each later than the one before by what a message takes. */
  function turnedAway(isUrgent: boolean): Slot {
    const spacingMs = usualMs / count
    const lineMs = (urgent.length + bulk.length) * spacingMs
    const retryInMs = places(isUrgent, Math.min(lineMs, longestAwayMs) / 2, spacingMs)
    return { granted: false, retryInMs }
  }

  return {
    count,

    /** Waits in line for a slot, which must be left again. */
    async take(request: SlotRequest): Promise<Slot> {
      const { isUrgent, isPatient, withinMs } = request
      const weight = Math.min(request.weight, count)
      const waiting = urgent.length + bulk.length
      if (isClosed) return sentAway
      if (waiting === 0 && inUse + weight <= count) return grant(weight)
      if (waiting >= maxWaiting) {
        // A code takes the place of the bulk that came last.
        const last = isUrgent ? bulk.pop() : undefined
        if (!last) return turnedAway(isUrgent)
        last.end(turnedAway(false))
      }
      return new Promise((resolve) => {
        const line = isUrgent ? urgent : bulk
        const one: Waiting = {
          weight,
          isPatient,
          end(slot) {
            clearTimeout(timer)
            resolve(slot)
          },
        }
        const timer = setTimeout(
          () => {
            const index = line.indexOf(one)
            if (index >= 0) line.splice(index, 1)
            one.end(sentAway)
            // It may have been the one that was too heavy for what is free.
            admitNext()
          },
          Math.min(withinMs, longestTimerMs),
        )
        line.push(one)
      })
    },

    /** Sends those away that can go elsewhere. */
    dismiss(): void {
      for (const line of [urgent, bulk]) {
        for (const one of line.splice(0)) {
          if (one.isPatient) line.push(one)
          else one.end(sentAway)
        }
      }
      admitNext()
    },

    /** Sends all that wait away and lets no other in; calls under way go on. */
    close(): void {
      isClosed = true
      for (const one of [...urgent.splice(0), ...bulk.splice(0)]) one.end(sentAway)
    },
  }
}
