/** What callers are told: made from what parts know of a subject, wherever that is kept. */
import type { Admission, Refusal, Remaining, WindowState } from './limiter.ts'
import { freeAt, holdFor, lockedForMs, usedIn, waitMsOf, windowIndexOf } from './memory/kinds.ts'
import type { PolicyWindow } from './policy/compile.ts'
import type { Rule, WindowLimit } from './policy/rule.ts'
import type { Check, Found, Refused, Taken } from './store.ts'

export function admissionOf(taken: readonly Taken[]): Admission {
  const remaining: Remaining[] = []
  let nextInMs = 0
  for (const { ask, uses, isFull, now } of taken) {
    const { part, permits } = ask
    const { name, mode } = part.rule
    for (const window of part.windows) {
      const left = window.limit - usedIn(part, window, uses, now) - (isFull ? permits : 0)
      remaining[window.index] = {
        rule: name,
        window: window.window,
        left: Math.max(0, left),
        ...(mode === 'observe' ? { isObserved: true } : {}),
      }
    }
    if (mode !== 'enforce') continue
    nextInMs = Math.max(nextInMs, waitMsOf(holdFor(part, uses, permits, now)))
  }
  return { admitted: true, remaining, nextInMs }
}

export function refusalOf({ policy }: Check, { hold, isNewLock }: Refused): Refusal {
  const window = policy.windows[windowIndexOf(hold)]
  if (!window) throw new Error(`policy ${policy.name} has no window ${windowIndexOf(hold)}`)
  const { mode, message } = window.rule
  return {
    admitted: false,
    ...limitOf(window),
    retryAfterMs: waitMsOf(hold),
    ...(mode === 'challenge' ? { challenge: true } : {}),
    ...(isNewLock ? { isNewLock } : {}),
    ...(message === undefined ? {} : { message }),
  }
}

export function limitOf({ rule, window, limit, windowMs }: PolicyWindow): WindowLimit {
  return { rule: rule.name, kind: rule.kind, window, limit, windowMs }
}

/** What every window holds. */
export function statesOf(found: readonly Found[]): WindowState[] {
  const waits = new Map<Rule, number>()
  for (const { ask, uses, now } of found) {
    const { part, permits } = ask
    const waitMs = waitMsOf(holdFor(part, uses, permits, now))
    waits.set(part.rule, Math.max(waitMs, waits.get(part.rule) ?? 0))
  }
  return found.flatMap((one) => partStatesOf(one, waits.get(one.ask.part.rule) ?? 0))
}

function partStatesOf({ ask: { part }, uses, now }: Found, nextInMs: number): WindowState[] {
  const lockedMs = lockedForMs(part, uses, now)
  return part.windows
    .toSorted((a, b) => a.index - b.index)
    .map((window) => {
      const { windowMs, ...limit } = limitOf(window)
      const used = Math.min(window.limit, usedIn(part, window, uses, now))
      return {
        ...limit,
        used,
        left: window.limit - used,
        resetsInMs: freeAt(part, window, uses, now) - now,
        nextInMs,
        ...(lockedMs > 0 ? { lockedForMs: lockedMs } : {}),
      }
    })
}
