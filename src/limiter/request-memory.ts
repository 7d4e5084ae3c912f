import { canonical } from '../base/canonical.ts'

/** What requests with an id took, in process. Bounded; the oldest go first, or when their time is over. */
interface Request {
  readonly policy: string
  readonly expiresAt: number
  readonly permits: number
  readonly subjects: readonly string[]
  /** By part: the time of the cell it went into, or 0. */
  readonly stamps: number[]
}

export function createRequestMemory(rememberMs: number, maxRequests: number) {
  const requests = new Map<string, Request>()
  const keyOf = (policy: string, requestId: string, subjects: readonly string[]) =>
    canonical([policy, requestId, ...subjects])

  function find(key: string, nowMs: number): Request | undefined {
    const request = requests.get(key)
    return request && request.expiresAt > nowMs ? request : undefined
  }

  return {
    has: (policy: string, requestId: string, subjects: readonly string[], nowMs: number) =>
      find(keyOf(policy, requestId, subjects), nowMs) !== undefined,

    remember(
      policy: string,
      requestId: string,
      subjects: readonly string[],
      nowMs: number,
      permits: number,
      stamps: number[],
    ): void {
      const key = keyOf(policy, requestId, subjects)
      requests.delete(key)
      for (const [oldest, request] of requests) {
        if (request.expiresAt > nowMs && requests.size < maxRequests) break
        requests.delete(oldest)
      }
      requests.set(key, { policy, expiresAt: nowMs + rememberMs, permits, subjects, stamps })
    },

    /** After a reset nothing that was taken from that subject before is given back any more. */
    forgetPart(ofPolicy: string, part: number, rule: number, subject: string): void {
      for (const { policy, subjects, stamps } of requests.values()) {
        if (policy === ofPolicy && subjects[rule] === subject) stamps[part] = 0
      }
    },

    /** Forgets the request and tells what it took. */
    take(
      policy: string,
      requestId: string,
      subjects: readonly string[],
      nowMs: number,
    ): Request | undefined {
      const key = keyOf(policy, requestId, subjects)
      const request = find(key, nowMs)
      requests.delete(key)
      return request
    },
  }
}
