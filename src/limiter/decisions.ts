/** Turns answers of a store into the values that callers get. */
import { type Hold, kindOf } from './kinds.ts'
import type { Admission, NewLock, Refusal, Remaining, WindowState } from './limiter.ts'
import type { PolicyWindow } from './policy/compile.ts'
import type { Rule, WindowLimit } from './policy/rule.ts'
import type { Found, RefusedAnswer, Taken } from './store.ts'

export function admissionOf(taken: readonly Taken[]): Admission {
  const remaining: Remaining[] = []
  let nextInMs = 0
  for (const { ask, uses, isFull, now } of taken) {
    const { part, permits } = ask
    const { name, mode } = part.rule
    for (const window of part.windows) {
      const left =
        window.limit - kindOf(part).usedIn(part, window, uses, now) - (isFull ? permits : 0)
      remaining[window.index] = {
        rule: name,
        window: window.window,
        left: Math.max(0, left),
        ...(mode === 'observe' ? { isObserved: true } : {}),
      }
    }
    nextInMs = Math.max(nextInMs, waitMsOf({ ask, uses, now }))
  }
  return { admitted: true, remaining, nextInMs }
}

/** Only such a rule makes callers wait. */
const enforces = ({ mode }: Rule) => mode === 'enforce'

function waitMsOf({ ask: { part, permits }, uses, now }: Found): number {
  return enforces(part.rule) ? (kindOf(part).ask(part, uses, permits, now).hold?.waitMs ?? 0) : 0
}

export function refusalOf({ hold: { waitMs, window }, newLock }: RefusedAnswer): Refusal {
  const { mode, message } = window.rule
  return {
    admitted: false,
    ...limitOf(window),
    retryAfterMs: waitMs,
    ...(mode === 'challenge' ? { challenge: true } : {}),
    ...(newLock ? { newLock: lockOf(newLock) } : {}),
    ...(message === undefined ? {} : { message }),
  }
}

function lockOf({ waitMs, window: { rule, window } }: Hold): NewLock {
  return { rule: rule.name, window, retryAfterMs: waitMs }
}

export function limitOf({ rule, window, limit, windowMs }: PolicyWindow): WindowLimit {
  return { rule: rule.name, kind: rule.kind, window, limit, windowMs }
}

export function statesOf(found: readonly Found[]): WindowState[] {
  const waits = new Map<Rule, number>()
  for (const one of found) {
    const { rule } = one.ask.part
    waits.set(rule, Math.max(waitMsOf(one), waits.get(rule) ?? 0))
  }
  return found.flatMap((one) => partStatesOf(one, waits.get(one.ask.part.rule) ?? 0))
}

function partStatesOf({ ask: { part }, uses, now }: Found, nextInMs: number): WindowState[] {
  const kind = kindOf(part)
  const lockedMs = enforces(part.rule) ? kind.lockedForMs(part, uses, now) : 0
  return part.windows
    .toSorted((a, b) => a.index - b.index)
    .map((window) => {
      const { windowMs, ...limit } = limitOf(window)
      const used = Math.min(window.limit, kind.usedIn(part, window, uses, now))
      return {
        ...limit,
        used,
        left: window.limit - used,
        resetsInMs: kind.freeAt(part, window, uses, now) - now,
        nextInMs,
        ...(lockedMs > 0 ? { lockedForMs: lockedMs } : {}),
      }
    })
}
