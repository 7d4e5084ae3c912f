import { type CellStore, type Look, lockMark, look, resetsInMs } from './cells.ts'
import {
  type Admission,
  InvalidPolicies,
  type LimiterHooks,
  type Refusal,
  type Remaining,
  type WindowState,
} from './limiter.ts'
import type { CompiledPolicy, Part } from './plan.ts'
import { type Policies, parsePolicies, type RawPolicies, type Rule } from './policies.ts'

/** Policies given in code are a programmer's: a mistake in them throws. */
export function checkedPolicies(raw: RawPolicies): Policies {
  const parsed = parsePolicies(raw)
  if (parsed.ok) return parsed.policies
  const lines = parsed.problems.map(({ path, message }) => `  ${path.join('.')}: ${message}`)
  throw new InvalidPolicies(`policies do not hold:\n${lines.join('\n')}`)
}

/** Throws for a policy that does not exist, and for permits that could never pass. */
export function policyOf<P extends CompiledPolicy>(
  policies: ReadonlyMap<string, P>,
  name: string,
  permits = 1,
): P {
  const policy = policies.get(name)
  if (!policy) throw new RangeError(`there is no policy ${name}`)
  if (!Number.isInteger(permits) || permits < 1) {
    throw new RangeError(`permits must be a whole number above 0, not ${permits}`)
  }
  if (permits > policy.maxPermits) {
    throw new RangeError(`policy ${name} never has more than ${policy.maxPermits} permits at once`)
  }
  return policy
}

/** `left` is by window of the policy; below 0 where an observed rule would have refused. */
export function admissionOf(
  policy: CompiledPolicy,
  left: readonly number[],
  nextInMs: number,
  onObserved?: LimiterHooks['onObserved'],
): Admission {
  const remaining: Remaining[] = []
  let observed: Rule | undefined
  for (let index = 0; index < policy.windows.length; index++) {
    const { rule, window } = policy.windows[index] as CompiledPolicy['windows'][number]
    const windowLeft = left[index] as number
    remaining.push({ rule: rule.name, window, left: windowLeft > 0 ? windowLeft : 0 })
    if (windowLeft >= 0 || rule.mode === 'enforce' || rule === observed) continue
    observed = rule
    onObserved?.({ policy: policy.name, rule: rule.name })
  }
  return { admitted: true, remaining, nextInMs }
}

export function refusalOf(policy: CompiledPolicy, index: number, retryAfterMs: number): Refusal {
  const { rule, window, limit, windowMs } = policy.windows[
    index
  ] as CompiledPolicy['windows'][number]
  const { name, kind, message } = rule
  return message === undefined
    ? { admitted: false, rule: name, window, limit, windowMs, kind, retryAfterMs }
    : { admitted: false, rule: name, window, limit, windowMs, kind, retryAfterMs, message }
}

export function createLook(): Look {
  return { waitMs: 0, nextMs: 0, window: 0, gone: 0, used: 0, leadMs: 0, locks: 0, keepMs: 0 }
}

/** What the windows of a part hold, and how long and which of them would refuse these permits. */
export function examine(
  part: Part,
  store: CellStore,
  slot: number,
  nowMs: number,
  permits: number,
): { states: WindowState[]; waitMs: number; window: number } {
  const found = createLook()
  const left: number[] = []
  look(store, slot, part, nowMs, 0, 1, left, found)
  const lockedForMs = part.rule.lock && found.used >= lockMark ? found.nextMs : undefined
  const used = part.windows.map(({ limit }, index) =>
    Math.min(limit, limit - (left[part.firstWindow + index] as number)),
  )
  const asked = permits * part.rule.permits
  look(store, slot, part, nowMs, asked, asked, left, found)
  const states = part.windows.map(({ window, limit, windowMs }, index) => ({
    rule: part.rule.name,
    kind: part.rule.kind,
    window,
    limit,
    used: used[index] as number,
    left: limit - (used[index] as number),
    resetsInMs: used[index] === 0 ? 0 : resetsInMs(store, slot, windowMs, nowMs),
    nextInMs: found.waitMs,
    ...(lockedForMs === undefined ? {} : { lockedForMs }),
  }))
  return { states, waitMs: found.waitMs, window: found.window }
}
