/**
 * Codes go before bulk notices, because a person waits for a code, and bulk notices can be millions. Three places decide that,
 * one for each wait. Nothing else puts messages in an order (docs/decisions/0019).
 *
 * - The queues: notices wait for a worker. Codes have separate queues with separate workers (notice/job.ts).
 * - The lines before a provider, in this file: the notices of a process wait for its slots. If it can't take a message, the
 *   message is sent away until its return time. Codes and bulk notices have a line each.
 * - The pace of a provider: the notices of all workers wait for it. While a code waits, a key in Redis keeps bulk notices
 *   from it (provider-limits.ts).
 */
import { captchaPauses } from './retry.ts'

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

const longestTimeoutMs = 2 ** 31 - 1

/**
 * Slots of one provider in this process, and the lines before them. `count` returns their number, which may change, and may
 * be larger for codes.
 *
 * A provider with five connections makes the sixth call wait. That wait belongs to Postern, not to the provider. Otherwise
 * a healthy provider would look slow, calls would time out before they began, and messages would be sent twice. So a
 * message waits for a provider only here, before any time limit or attempt begins.
 *
 * Messages are served in the order of arrival, codes first. If its line is full, a message is sent away, so that messages
 * for other providers can go on. It comes back when the line has probably moved on.
 */
export function createSlots(
  count: (isUrgent: boolean) => number,
  maxWaiting = Number.POSITIVE_INFINITY,
) {
  const codes: Waiting[] = []
  const bulk: Waiting[] = []
  let inUse = 0
  let isClosed = false
  /** Usual time that a slot is in use. */
  let usualDurationMs = 100
  const returnTimes = createReturnTimes(longestLimitRetryMs / 2)

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

  const hasRoom = (weight: number, isUrgent: boolean) =>
    inUse === 0 || inUse + weight <= count(isUrgent)

  function admitNext(): void {
    for (;;) {
      const line = codes.length > 0 ? codes : bulk
      const [first] = line
      if (!first || !hasRoom(first.weight, line === codes)) return
      line.shift()
      first.end(grant(first.weight))
    }
  }

  /** Number of waiting messages that are served before this one. */
  const ahead = (isUrgent: boolean) => codes.length + (isUrgent ? 0 : bulk.length)

  /** Sends a message away until the line has moved on. Each comes back one usual call after the previous one. */
  function turnedAway(isUrgent: boolean): Slot {
    const spacingMs = usualDurationMs / count(isUrgent)
    const lineDurationMs = ahead(isUrgent) * spacingMs
    const soonestRetryMs = Math.min(lineDurationMs, longestLimitRetryMs) / 2
    return { granted: false, retryInMs: returnTimes(isUrgent, soonestRetryMs, spacingMs) }
  }

  return {
    usualDurationMs: () => usualDurationMs,

    /** Waits in line for a slot. The caller must free the slot. */
    async take(request: Partial<SlotRequest> = {}): Promise<Slot> {
      const {
        isUrgent = false,
        isPatient = true,
        timeoutMs = longestTimeoutMs,
        weight = 1,
      } = request
      const line = isUrgent ? codes : bulk
      if (isClosed) return sentAway
      // A code passes bulk notices, also one that waits for more slots than are free.
      if (ahead(isUrgent) === 0 && hasRoom(weight, isUrgent)) return grant(weight)
      if (line.length >= maxWaiting) return turnedAway(isUrgent)
      return new Promise((resolve) => {
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
      for (const line of [codes, bulk]) {
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
      for (const one of [...codes.splice(0), ...bulk.splice(0)]) one.end(sentAway)
    },
  }
}

export const deferralReasons = ['paused', 'circuit', 'busy', 'pace', 'quota', 'limiter'] as const

/** A message was sent away: the provider was not called. */
export interface Deferred {
  kind: 'deferred'
  reason: (typeof deferralReasons)[number]
  retryInMs: number
}

/** The longest time until a message that was sent away comes back, except for messages that are too many for it. */
export const longestLimitRetryMs = 60_000
const soonestCheckRetryMs = 20_000
/** Each return costs two SQL statements and a question to the limiter, so they have this distance. */
const checkSpacingMs = 5

/**
 * Return times of messages that a provider sent away. Each message gets a later time than the one before it. Otherwise all
 * would come back together, and all but one would be sent away again. Bulk notices never move the return times of codes. A
 * code comes back at most half a minute after it may be sent, so a flood of codes keeps no permits for codes that have expired.
 */
export function createReturnTimes(longestBulkRetryMs = Number.POSITIVE_INFINITY) {
  const codes = createReturnLine(captchaPauses.longestRetryMs)
  const bulk = createReturnLine(longestBulkRetryMs)
  return (isUrgent: boolean, soonestRetryMs: number, spacingMs: number) =>
    (isUrgent ? codes : bulk)(soonestRetryMs, spacingMs)
}

function createReturnLine(longestRetryMs: number) {
  let lastAtMs = 0
  let lastCheckAtMs = 0
  /**
   * Time until the message comes back: at least `soonestRetryMs`, and `spacingMs` after the previous message. It is at most
   * `soonestRetryMs + longestRetryMs`.
   *
   * If the provider or a line without this bound needs more than a minute, the message comes back earlier, to check. Meanwhile
   * an operator may raise the limit, a provider may end its pause, or a new worker may have another provider in the route.
   * A message that returns only to check takes no place. Otherwise the line would grow with each check. Only if more than
   * 8,000 messages wait, this takes longer; upkeep/bring-forward.ts brings those forward.
   */
  return function retryInMs(soonestRetryMs: number, spacingMs: number): number {
    const nowMs = performance.now()
    const inLineRetryMs = Math.max(soonestRetryMs, lastAtMs + spacingMs - nowMs)
    const isBounded = longestRetryMs < Number.POSITIVE_INFINITY
    if ((isBounded ? soonestRetryMs : inLineRetryMs) <= longestLimitRetryMs) {
      const placeRetryMs = Math.min(inLineRetryMs, soonestRetryMs + longestRetryMs)
      lastAtMs = nowMs + placeRetryMs
      return placeRetryMs
    }
    lastCheckAtMs = Math.max(nowMs + soonestCheckRetryMs, lastCheckAtMs + checkSpacingMs)
    return Math.min(inLineRetryMs, lastCheckAtMs - nowMs)
  }
}
