/**
 * The parts of a decision of the limits, or of a check, that the table `decision` keeps. They are enough for support to
 * explain a refusal, and for a replay to decide the request again. They contain no readable personal data: recipients
 * have the same keyed hash as in notices. Other personal values have short keyed hashes, so that equal values stay equal.
 */
import type { Channel } from '../base/channel.ts'
import type { Policies } from '../limiter/index.ts'
import { findRule, requestValues } from '../rules/key-fields.ts'
import { isCheckPolicy } from '../rules/policies.ts'
import type { Fields, OnDecided } from '../rules/quota.ts'

/** A recipient of one app. Each app has its own decisions. */
export interface Recipient {
  app: string
  channel: Channel
  to: string
}

export const checkResults = ['passed', 'mismatch', 'gone', 'refused'] as const
export type CheckResult = (typeof checkResults)[number]

export type Outcome =
  /** A send: its uses were taken, or later given back because it failed. */
  | 'admitted'
  | 'released'
  /** A send or a check, by a rule. `challenged`: the rule only required a challenge. */
  | 'refused'
  | 'challenged'
  /** A wrong code that began a lock. It was compared, and is a `mismatch` too. */
  | 'locked'
  /** A check, by its code. */
  | 'passed'
  | 'mismatch'
  | 'gone'

export interface Refusal {
  /** The policy that the rule is declared in. */
  policy: string
  rule: string
  window: string
  retryAfterMs: number
  /** The rule only required a challenge, which the caller had not solved. */
  challenge?: true
  /** The lock began with this wrong code, which used up the limit. The code was compared, and nothing was refused yet. */
  lockBegan?: true
  /** A check was refused; otherwise a send. */
  isOfCheck?: true
  /** Extra key fields of a rule whose key contains the recipient. */
  values?: readonly string[] | undefined
}

export type Heard = Parameters<OnDecided>[0]

/** A row before its values are hashed. */
export interface Noted {
  /** By `performance.now()`. */
  atMs: number
  app: string
  channel: string
  outcome: Outcome
  /** Number of equal decisions. */
  times: number
  /** Absent in a row that only counts, as are the fields. */
  to?: string | undefined
  policy?: string | undefined
  refusal?: Refusal | undefined
  isSolved?: boolean | undefined
  noticeId?: string | undefined
  fields?: Fields | undefined
  share?: number
}

export const timesOf = (noted: readonly Noted[]) => noted.reduce((all, { times }) => all + times, 0)

/** Undefined if the request was admitted. */
export function refusalOf(
  { policy, fields, decision }: Heard,
  policies: Policies,
): Refusal | undefined {
  if (decision.admitted) return undefined
  const { challenge, newLock } = decision
  const { rule: name, window, retryAfterMs } = newLock ?? decision
  const rule = findRule(policies, policy, name)
  return {
    ...{ policy: rule?.policy ?? policy, rule: name, window, retryAfterMs },
    ...(challenge && { challenge: true }),
    ...(newLock && { lockBegan: true }),
    ...(isCheckPolicy(policy) && { isOfCheck: true }),
    values: rule && requestValues(rule, fields),
  }
}
