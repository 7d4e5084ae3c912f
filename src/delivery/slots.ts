/**
 * Slots of one provider in this process, and the line before them. A provider has slots for its calls, and a few more
 * slots for claimed messages. So the next messages are ready when a call ends.
 *
 * A provider with five connections makes the sixth call wait. That wait belongs to Postern, not to the provider. Otherwise
 * a healthy provider would look slow, calls would time out before they began, and messages would be sent twice. So a
 * message waits for a provider only here, before any time limit or attempt begins. A long wait comes before its claim.
 *
 * Messages are served in the order of arrival, codes before bulk notices. The line is short. If it is full, a message is sent
 * away, so that messages for other providers can go on. It comes back when the line has probably moved on.
 */
import { createReturnTimes } from './return-times.ts'

export interface SlotRequest {
  isUrgent: boolean
  /** Number of slots for this call. If there are fewer, it takes all of them. */
  weight: number
  /** The longest wait for a slot. */
  timeoutMs: number
  /** No other provider can send the message, so it stays when others are sent away. */
  isPatient: boolean
}

export type Slot = { granted: true; leave(): void } | { granted: false; retryInMs: number }

interface Waiting {
  weight: number
  isPatient: boolean
  end(slot: Slot): void
}

const sentAway: Slot = { granted: false, retryInMs: 0 }

/** The longest time until a message that was sent away comes back. */
const longestRetryMs = 60_000
const longestTimeoutMs = 2 ** 31 - 1

/** `count` returns the number of slots, which may change. */
export function createSlots(count: () => number, maxWaiting = Number.POSITIVE_INFINITY) {
  const urgent: Waiting[] = []
  const bulk: Waiting[] = []
  let inUse = 0
  let isClosed = false
  /** Usual time that a slot is in use. */
  let usualDurationMs = 100
  const returnTimes = createReturnTimes(longestRetryMs / 2)

  function grant(weight: number): Slot {
    const startedAtMs = performance.now()
    let isLeft = false
    inUse += weight
    return {
      granted: true,
      leave() {
        if (isLeft) return
        isLeft = true
        inUse -= weight
        usualDurationMs += (performance.now() - startedAtMs - usualDurationMs) / 10
        admitNext()
      },
    }
  }

  const hasRoom = (weight: number) => inUse === 0 || inUse + weight <= count()

  function admitNext(): void {
    for (;;) {
      const line = urgent.length > 0 ? urgent : bulk
      const [first] = line
      if (!first || !hasRoom(first.weight)) return
      line.shift()
      first.end(grant(first.weight))
    }
  }

  /** Sends a message away until the line has moved on. Each comes back one usual call after the previous one. */
  function turnedAway(isUrgent: boolean): Slot {
    const spacingMs = usualDurationMs / count()
    const lineDurationMs = (urgent.length + bulk.length) * spacingMs
    const retryInMs = returnTimes(isUrgent, Math.min(lineDurationMs, longestRetryMs) / 2, spacingMs)
    return { granted: false, retryInMs }
  }

  return {
    usualDurationMs: () => usualDurationMs,

    /** Waits in line for a slot. The caller must free the slot. */
    async take(request: SlotRequest): Promise<Slot> {
      const { isUrgent, isPatient, timeoutMs, weight } = request
      const waiting = urgent.length + bulk.length
      if (isClosed) return sentAway
      // A code passes bulk notices, also one that waits for more slots than are free.
      const ahead = isUrgent ? urgent.length : waiting
      if (ahead === 0 && hasRoom(weight)) return grant(weight)
      if (waiting >= maxWaiting) {
        // A code takes the place of the latest bulk notice.
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
            line.splice(line.indexOf(one), 1)
            one.end(sentAway)
            // The removed message may have needed more slots than were free.
            admitNext()
          },
          Math.min(timeoutMs, longestTimeoutMs),
        )
        line.push(one)
      })
    },

    /** Sends away all messages that another provider can send. */
    dismiss(): void {
      for (const line of [urgent, bulk]) {
        for (const one of line.splice(0)) {
          if (one.isPatient) line.push(one)
          else one.end(sentAway)
        }
      }
      admitNext()
    },

    /** Sends all waiting messages away and accepts no more. Calls under way go on. */
    close(): void {
      isClosed = true
      for (const one of [...urgent.splice(0), ...bulk.splice(0)]) one.end(sentAway)
    },
  }
}
