/**
 * The state in process: for every part of a rule a map of subjects, each with its uses. Bounded without
 * timers. The functions do what the scripts of the same names do in Redis.
 */
import { canonical } from '../../base/canonical.ts'
import type { Part } from '../policy/compile.ts'
import type { Answer, Check, Found, IsGivenBack, Taken } from '../store.ts'
import { add, decide, type Look, remove, type Uses } from './kinds.ts'

/** What a part knows of one subject. */
interface Entry {
  uses: Uses
  isKept: boolean
  isRecent: boolean
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

const nothing: Look = { hold: 0, uses: undefined, at: 0 }
const subjectOf = (part: Part, { subjects }: Check) => subjects[part.ruleIndex] ?? ''

export function createMemoryStore(maxSubjects: number, rememberMs: number, clock: () => number) {
  const subjects = new Map<string, Map<string, Entry>>()
  const requests = new Map<string, Request>()

  const find = (part: Part, check: Check) => subjects.get(part.name)?.get(subjectOf(part, check))

  /** Keeps what took something. When there are too many, a tenth of those that took nothing since goes. */
  function keep(part: Part, check: Check, entry: Entry): void {
    entry.isRecent = entry.isKept
    if (entry.isKept) return
    entry.isKept = true
    const entries = subjects.get(part.name) ?? new Map<string, Entry>()
    subjects.set(part.name, entries)
    if (entries.size >= maxSubjects) makeRoom(entries)
    entries.set(subjectOf(part, check), entry)
  }

  function makeRoom(entries: Map<string, Entry>): void {
    let surplus = Math.ceil(maxSubjects / 10)
    for (const [subject, entry] of entries) {
      if (surplus === 0) return
      entries.delete(subject)
      if (entry.isRecent) entries.set(subject, entry)
      else surplus--
      entry.isRecent = false
    }
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
      let held = 0
      let challenged = 0
      let full: Set<number> | undefined
      const looks = check.parts.map((part) => {
        const entry = find(part, check) ?? { uses: part.empty, isKept: false, isRecent: false }
        const permits = check.permits[part.ruleIndex] ?? 1
        const answer = request ? nothing : decide(part, entry.uses, permits, now)
        if (answer.hold > 0) {
          const { mode } = part.rule
          if (mode === 'enforce') held = Math.max(held, answer.hold)
          else if (mode === 'observe' || check.isSolved)
            full = (full ?? new Set()).add(part.ruleIndex)
          else challenged = Math.max(challenged, answer.hold)
        }
        return { part, entry, permits, answer }
      })
      const hold = held > 0 ? held : challenged
      let isNewLock = false
      const takings: Taking[] = []
      const taken = looks.map(({ part, entry, permits, answer }): Taken => {
        const { hold: own, uses, at } = answer
        const isFull = full?.has(part.ruleIndex) ?? false
        if (own > 0 && uses) {
          isNewLock ||= own === hold
          entry.uses = uses
          keep(part, check, entry)
        } else if (hold === 0 && !isFull && uses) {
          entry.uses = add(part, uses, at, permits, now)
          keep(part, check, entry)
          if (key !== undefined) takings.push({ part, entry, at, permits })
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

    peek: (check: Check): Found[] =>
      check.parts.map((part) => {
        return { part, uses: find(part, check)?.uses ?? part.empty, now: clock() }
      }),

    reset(check: Check): void {
      for (const part of check.parts) subjects.get(part.name)?.delete(subjectOf(part, check))
    },
  }
}
