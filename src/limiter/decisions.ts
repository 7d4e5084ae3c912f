/** What callers are told: made from what parts know of a subject, wherever that is kept. */

import type { Admission, LimiterEvents, Refusal, Remaining, WindowState } from './limiter.ts'
import {
  freeAt,
  holdFor,
  lockedForMs,
  type Uses,
  usedIn,
  waitMsOf,
  windowIndexOf,
} from './memory/kinds.ts'
import type { CompiledPolicy, Part } from './policy/compile.ts'
import type { Taken } from './store.ts'

/** `taken` has every part of the policy, in its order. */
export function admissionOf(
  policy: CompiledPolicy,
  taken: readonly Taken[],
  events: LimiterEvents,
): Admission {
  const remaining: Remaining[] = []
  const observed = new Set<string>()
  let nextInMs = 0
  for (const { part, uses, isFull, permits, now } of taken) {
    const { name, mode } = part.rule
    for (const window of part.windows) {
      const left = window.limit - usedIn(part, window, uses, now) - (isFull ? permits : 0)
      remaining[window.index] = { rule: name, window: window.window, left: Math.max(0, left) }
    }
    if (mode === 'enforce')
      nextInMs = Math.max(nextInMs, waitMsOf(holdFor(part, uses, permits, now)))
    if (isFull && mode === 'observe') observed.add(name)
  }
  for (const rule of observed) events.onObserved?.({ policy: policy.name, rule })
  events.onAdmitted?.({ policy: policy.name })
  return { admitted: true, remaining, nextInMs }
}

export function refusalOf(policy: CompiledPolicy, hold: number, isNewLock: boolean): Refusal {
  const window = policy.windows[windowIndexOf(hold)]
  if (!window) throw new Error(`policy ${policy.name} has no window ${windowIndexOf(hold)}`)
  const { name, kind, mode, message } = window.rule
  return {
    admitted: false,
    rule: name,
    window: window.window,
    limit: window.limit,
    windowMs: window.windowMs,
    kind,
    retryAfterMs: waitMsOf(hold),
    ...(mode === 'challenge' ? { challenge: true } : {}),
    ...(isNewLock ? { isNewLock } : {}),
    ...(message === undefined ? {} : { message }),
  }
}

/** What every window of a part holds. */
export function statesOf(part: Part, uses: Uses, now: number): WindowState[] {
  const lockedMs = lockedForMs(part, uses, now)
  const permits = typeof part.rule.permits === 'number' ? part.rule.permits : 1
  const nextInMs = waitMsOf(holdFor(part, uses, permits, now))
  return part.windows
    .toSorted((a, b) => a.index - b.index)
    .map((window) => {
      const used = Math.min(window.limit, usedIn(part, window, uses, now))
      return {
        rule: part.rule.name,
        kind: part.kind,
        window: window.window,
        limit: window.limit,
        used,
        left: window.limit - used,
        resetsInMs: freeAt(part, window, uses, now) - now,
        nextInMs,
        ...(lockedMs > 0 ? { lockedForMs: lockedMs } : {}),
      }
    })
}
