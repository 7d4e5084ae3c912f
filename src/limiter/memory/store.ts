/**
 * The state in process: for every part of a rule a map of subjects, each with its uses. Bounded without
 * timers. The functions do what the scripts of the same names do in Redis.
 */
import { canonical } from '../../base/canonical.ts'
import type { Part } from '../policy/compile.ts'
import type { Answer, Check, Found, IsGivenBack, Taken } from '../store.ts'
import { add, decide, remove, type Uses } from './kinds.ts'

/** What a part knows of one subject. */
interface Entry {
  uses: Uses
}

/** What a request took from one part. */
interface Taking {
  readonly part: Part
  readonly entry: Entry
  readonly at: number
  readonly permits: number
}

interface Request {
  readonly expiresAt: number
  takings: readonly Taking[]
}

const none = { hold: 0, uses: undefined, at: 0 }

export function createMemoryStore(maxSubjects: number, rememberMs: number, clock: () => number) {
  const subjects = new Map<string, Map<string, Entry>>()
  const requests = new Map<string, Request>()

  const find = (part: Part, subject: string) => subjects.get(part.name)?.get(subject)

  /** Keeps the entry as the newest. The tenth that took something longest ago makes room for many at once. */
  function keep(part: Part, subject: string, entry: Entry): void {
    const entries = subjects.get(part.name) ?? new Map<string, Entry>()
    subjects.set(part.name, entries)
    if (!entries.delete(subject) && entries.size >= maxSubjects) {
      let surplus = Math.ceil(maxSubjects / 10)
      for (const oldest of entries.keys()) if (surplus-- > 0) entries.delete(oldest)
    }
    entries.set(subject, entry)
  }

  function remember(key: string, takings: readonly Taking[], now: number): void {
    for (const [oldest, { expiresAt }] of requests) {
      if (expiresAt > now && requests.size < maxSubjects) break
      requests.delete(oldest)
    }
    requests.set(key, { expiresAt: now + rememberMs, takings })
  }

  function findRequest({ policy, requestId, subjects }: Check, now: number) {
    if (requestId === undefined) return { key: undefined, request: undefined }
    const key = canonical([policy.name, requestId, ...subjects])
    const request = requests.get(key)
    return { key, request: request && request.expiresAt > now ? request : undefined }
  }

  return {
    acquire(check: Check): Answer {
      const now = clock()
      const { key, request } = findRequest(check, now)
      const full = new Set<number>()
      let held = 0
      let challenged = 0
      const looks = check.parts.map((part) => {
        const entry = find(part, check.subjects[part.ruleIndex] ?? '') ?? { uses: part.empty }
        const permits = check.permits[part.ruleIndex] ?? 1
        const found = request ? none : decide(part, entry.uses, permits, now)
        const { mode } = part.rule
        if (mode === 'enforce') held = Math.max(held, found.hold)
        else if (mode === 'challenge' && !check.isSolved)
          challenged = Math.max(challenged, found.hold)
        else if (found.hold > 0) full.add(part.ruleIndex)
        return { part, entry, permits, ...found }
      })
      const hold = held > 0 ? held : challenged
      let isNewLock = false
      const takings: Taking[] = []
      const taken = looks.map(({ part, entry, permits, hold: own, uses, at }): Taken => {
        const isFull = own > 0 || full.has(part.ruleIndex)
        if (uses && (own > 0 || (hold === 0 && !isFull))) {
          entry.uses = own > 0 ? uses : add(part, uses, at, permits, now)
          keep(part, check.subjects[part.ruleIndex] ?? '', entry)
          if (own > 0) isNewLock ||= own === hold
          else takings.push({ part, entry, at, permits })
        }
        return { part, uses: entry.uses, isFull, permits, now }
      })
      if (hold > 0) return { hold, isNewLock, sentAt: 0 }
      if (key !== undefined && !request && taken.length > 0) remember(key, takings, now)
      return { hold: 0, taken }
    },

    release(check: Check, isGivenBack: IsGivenBack): boolean {
      const { key = '', request } = findRequest(check, clock())
      if (!request) return false
      for (const { part, entry, at, permits } of request.takings) {
        if (isGivenBack(part)) entry.uses = remove(part, entry.uses, at, permits)
      }
      request.takings = request.takings.filter(({ part }) => !isGivenBack(part))
      if (request.takings.length === 0) requests.delete(key)
      return true
    },

    peek: ({ parts, subjects }: Check): Found[] =>
      parts.map((part) => {
        const entry = find(part, subjects[part.ruleIndex] ?? '')
        return { part, uses: entry?.uses ?? part.empty, now: clock() }
      }),

    reset({ parts, subjects: own }: Check): void {
      for (const part of parts) subjects.get(part.name)?.delete(own[part.ruleIndex] ?? '')
    },
  }
}
