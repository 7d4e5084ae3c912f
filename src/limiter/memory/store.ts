/**
 * The store in process: for every part of a rule, a map from subjects to uses. It is bounded without timers. Each
 * function does what the script of the same name does in Redis.
 */
import { createBoundedMap } from '../../base/bounded-map.ts'
import { canonical, shortKey } from '../../base/canonical.ts'
import { type Hold, kindOf, longer } from '../kinds.ts'
import type { Part } from '../policy/compile.ts'
import type { Rule } from '../policy/rule.ts'
import type { Answer, Ask, Check, Found, IsMeant, Taken } from '../store.ts'
import { add, correct, remove, type Uses } from '../uses.ts'

interface Entry {
  uses: Uses
  isKept: boolean
  /** The subject had another call after its first one, and after the last `makeRoom`. */
  isRecent: boolean
}

/** The uses that a request took from one part. */
interface Taking {
  readonly ask: Ask
  readonly entry: Entry
  readonly at: number
}

interface Request {
  readonly expiresAt: number
  takings: readonly Taking[]
}

export function createMemoryStore(maxSubjects: number, rememberMs: number, clock: () => number) {
  const entriesByPart = new Map<string, Map<string, Entry>>()
  const requests = createBoundedMap<Request>(2 * maxSubjects)

  function find({ part, subject }: Ask): Entry {
    const found = entriesByPart.get(part.name)?.get(subject)
    return found ?? { uses: part.empty, isKept: false, isRecent: false }
  }

  /** The stored correction lasts. Otherwise each call would begin the wait of a corrected use anew. */
  function read(ask: Ask, now: number): Entry {
    const entry = find(ask)
    entry.uses = correct(ask.part, entry.uses, now)
    return entry
  }

  /** Stores the uses of a subject. */
  function keep({ part, subject }: Ask, entry: Entry, uses: Uses): void {
    entry.uses = uses
    entry.isRecent = entry.isKept
    if (entry.isKept) return
    entry.isKept = true
    const entries = entriesByPart.get(part.name) ?? new Map<string, Entry>()
    entriesByPart.set(part.name, entries)
    if (entries.size >= maxSubjects) makeRoom(entries)
    entries.set(subject, entry)
  }

  /** Removes a tenth of the subjects: the oldest without a recent call. */
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

  function look({ asks }: Check, now: number): Found[] {
    return asks.map((ask) => ({ ask, uses: correct(ask.part, find(ask).uses, now), now }))
  }

  function findRequest({ policy, requestId, fields }: Check, now: number) {
    if (requestId === undefined) return {}
    const key = shortKey(canonical([policy.name, requestId, fields]))
    const request = requests.get(key)
    return { key, request: request && request.expiresAt > now ? request : undefined }
  }

  return {
    acquire(check: Check): Answer {
      const now = clock()
      const { key, request } = findRequest(check, now)
      if (request) {
        const { asks } = check
        return {
          taken: asks.map((ask) => ({ ask, uses: read(ask, now).uses, isFull: false, now })),
        }
      }
      let held: Hold | undefined
      let challenged: Hold | undefined
      let newLock: Hold | undefined
      let full: Set<Rule> | undefined
      const looks = check.asks.map((ask) => {
        const { part, permits } = ask
        const entry = read(ask, now)
        const { hold, uses, at } = kindOf(part).decide(part, entry.uses, permits, now)
        if (hold && uses) keep(ask, entry, uses)
        if (hold) {
          entry.isRecent = entry.isKept
          const { mode } = part.rule
          const isPassed = mode === 'observe' || (mode === 'challenge' && check.isSolved)
          if (isPassed) full = (full ?? new Set()).add(part.rule)
          else if (mode === 'enforce') held = longer(held, hold)
          else challenged = longer(challenged, hold)
          if (uses && !isPassed) newLock = longer(newLock, hold)
        }
        return { ask, entry, uses, at }
      })
      const hold = held ?? challenged
      if (hold) return { hold, newLock }
      const takings: Taking[] = []
      const taken = looks.map(({ ask, entry, uses, at }): Taken => {
        const { part, permits } = ask
        const isFull = full?.has(part.rule) ?? false
        if (!isFull && uses) {
          keep(ask, entry, add(part, uses, at, permits, now))
          if (key !== undefined) takings.push({ ask, entry, at })
        }
        return { ask, uses: entry.uses, isFull, now }
      })
      if (key !== undefined && taken.length > 0) {
        requests.set(key, { expiresAt: now + rememberMs, takings })
      }
      return { taken }
    },

    release(check: Check, isMeant: IsMeant): boolean {
      const { key = '', request } = findRequest(check, clock())
      if (!request) return false
      request.takings = request.takings.filter(({ ask, entry, at }) => {
        if (!isMeant(ask.part)) return true
        entry.uses = remove(ask.part, entry.uses, at, ask.permits)
        return false
      })
      if (request.takings.length === 0) requests.delete(key)
      return true
    },

    peek: (check: Check) => look(check, clock()),

    changeParts(parts: readonly Part[]): void {
      // Names of parts begin with their rule. A rule that changes its kind keeps its counts, for the way back.
      const rules = new Set(parts.map(({ rule }) => canonical([rule.policy, rule.name])))
      const isKept = (name: string) => [...rules].some((rule) => name.startsWith(rule))
      for (const name of entriesByPart.keys()) if (!isKept(name)) entriesByPart.delete(name)
    },

    reset({ asks }: Check): void {
      for (const { part, subject } of asks) entriesByPart.get(part.name)?.delete(subject)
    },
  }
}
