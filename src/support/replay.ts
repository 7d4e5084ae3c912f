/**
 * Decides recorded requests again with other rules: by the limiter in process, with the recorded times. Requests before
 * the counted span are decided too, so that the counts are right at its beginning.
 *
 * Limits of a replay: a request that is now admitted could have had repeats, and a request that is now refused could have
 * been sent later. If only a share of recipients was recorded, rules that count several recipients see only that share.
 */
import type { Channel } from '../base/channel.ts'
import {
  createLimiter,
  InvalidPermits,
  type MemoryLimiter,
  type Policies,
  parsePolicies,
  type RawPolicies,
} from '../limiter/index.ts'
import { afterPass } from '../rules/guess-limits.ts'
import type { DecidedRecord, DecisionRecord, RecordedRefusal } from './record.ts'

/** The rule that refused a request or required a challenge; undefined if the request was admitted. */
type RefusedBy = Pick<RecordedRefusal, 'rule' | 'challenge'> | undefined

interface Counts {
  refused: number
  asked: number
  admitted: number
}
export type Treatment = keyof Counts

/** Decisions of a rule, as recorded and now. `rule: null` stands for a policy without rules. */
export interface Row {
  policy: string
  rule: string | null
  was: Counts
  now: Counts
  /** Requests that passed a full rule in `mode: observe`. */
  observed: number
}

export interface Change {
  policy: string
  was: Treatment
  now: Treatment
  requests: number
  /** Recipients by a short hash, most requests first. */
  recipients: { hash: string; requests: number }[]
}

export interface Replayed {
  /** Times of the first and the last counted request. */
  fromMs: number | undefined
  toMs: number | undefined
  requests: number
  recipients: number
  /** One in this many recipients was recorded. Only the recorded ones are counted here. */
  oneOf: number
  /** Policies of recorded requests that the new file does not have. These requests are left out. */
  missing: string[]
  rows: Row[]
  changes: Change[]
}

/** Limit for repeats of one refused request. Further repeats count like the last one. */
const maxRepeats = 50
/** Longer than any time between a recorded request and the pass of its code: records live for seven days. */
const rememberRequestsMs = 8 * 86_400_000
const maxSubjects = 2_000_000

export async function replay(options: {
  records: readonly DecisionRecord[]
  /** The policies of the new file. */
  policies: RawPolicies
  /** Only requests since this time are counted. */
  sinceMs: number
  /** The price of a message in the new file. */
  priceOf: (channel: Channel, country: string) => number
}): Promise<Replayed> {
  const { sinceMs, priceOf } = options
  const parsed = parsePolicies(options.policies)
  if (!parsed.ok) throw new Error(parsed.problems.map(({ message }) => message).join('\n'))
  const { policies } = parsed
  let share = 0
  for (const record of options.records) {
    if (record.atMs >= sinceMs) share = Math.max(share, record.share)
  }
  const missing = new Set<string>()
  const isDecidable = ({ policy }: DecidedRecord) => {
    const isThere = Object.hasOwn(policies, policy)
    if (!isThere) missing.add(policy)
    return isThere
  }
  const records = options.records
    .filter((one) => one.kind !== 'decided' || (one.level >= share && isDecidable(one)))
    .toSorted((a, b) => a.atMs - b.atMs)
  const tally = createTally(policies)
  let nowMs = 0
  let isCounted = false
  const limiter = createLimiter({
    policies: options.policies,
    clock: () => nowMs,
    maxSubjects,
    rememberRequestsMs,
    onObserved({ policy, rule }) {
      if (isCounted) tally.observe(policy, rule)
    },
  })
  const decided = new Map<string, DecidedRecord>()

  for (const record of records) {
    nowMs = record.atMs
    isCounted = nowMs >= sinceMs
    if (record.kind === 'decided') {
      const { channel, country } = record.fields
      const price = priceOf(channel as Channel, String(country))
      const fields = { ...record.fields, price }
      decided.set(record.id, { ...record, fields })
      decideAgain({ ...record, fields })
    } else if (record.kind === 'released') {
      const taken = decided.get(record.id)
      if (taken) await limiter.release(taken.policy, taken.fields, taken.id)
    } else if (record.kind === 'checked') {
      const sent = decided.get(record.sentId ?? '')
      await pass(limiter, policies, decided.get(record.id), sent)
    }
  }
  return { ...tally.result(), oneOf: 2 ** share, missing: [...missing] }

  function decideAgain(record: DecidedRecord): void {
    let outcome: RefusedBy
    for (let time = 0; time < record.times; time++) {
      if (time < maxRepeats)
        outcome = outcomeOf(record, time === 0 ? record.id : `${record.id} ${time}`)
      if (isCounted) tally.add(record, outcome)
    }
  }

  function outcomeOf({ policy, fields, isSolved }: DecidedRecord, requestId: string): RefusedBy {
    try {
      const decision = limiter.tryAcquire(policy, fields, { requestId, isSolved })
      return decision.admitted ? undefined : decision
    } catch (error) {
      // The price of one message is above the limit of the rule.
      const rule = policies[policy]?.find(({ permits }) => typeof permits === 'string')
      if (error instanceof InvalidPermits && rule) return { rule: rule.name }
      throw error
    }
  }
}

/** The effect of a passed code on the limits (src/captcha/check.ts). */
async function pass(
  limiter: MemoryLimiter,
  policies: Policies,
  checked: DecidedRecord | undefined,
  sent: DecidedRecord | undefined,
): Promise<void> {
  if (sent) await limiter.refund(sent.policy, sent.fields, sent.id)
  if (!checked) return
  const { policy, fields, id } = checked
  const { cleared, givenBack } = afterPass(policies[policy] ?? [])
  if (givenBack.length > 0) await limiter.release(policy, fields, id, givenBack)
  for (const name of cleared) await limiter.reset(policy, fields, name)
}

function createTally(policies: Policies) {
  const rows = new Map<string, Row>()
  const changes = new Map<string, Change & { byRecipient: Map<string, number> }>()
  const recipients = new Set<string>()
  let [requests, fromMs, toMs] = [0, Number.POSITIVE_INFINITY, 0]
  const none = (): Counts => ({ refused: 0, asked: 0, admitted: 0 })

  function rowOf(policy: string, rule: string | null): Row {
    const key = `${policy} ${rule ?? ''}`
    const row = rows.get(key) ?? { policy, rule, was: none(), now: none(), observed: 0 }
    rows.set(key, row)
    return row
  }

  /** The row of a rule belongs to the policy that declares it. If the rule was removed, it belongs to the request's policy. */
  function rowFor(policy: string, rule: string): Row {
    return rowOf(policies[policy]?.find(({ name }) => name === rule)?.policy ?? policy, rule)
  }

  function count(policy: string, outcome: RefusedBy, when: 'was' | 'now'): void {
    const total = rowOf(policy, null)[when]
    total[treatmentOf(outcome)] += 1
    if (outcome) rowFor(policy, outcome.rule)[when][treatmentOf(outcome)] += 1
  }

  return {
    add({ policy, fields, refusal, atMs }: DecidedRecord, now: RefusedBy): void {
      const to = String(fields.to)
      requests += 1
      recipients.add(to)
      fromMs = Math.min(fromMs, atMs)
      toMs = Math.max(toMs, atMs)
      count(policy, refusal, 'was')
      count(policy, now, 'now')
      const [wasTreated, nowTreated] = [treatmentOf(refusal), treatmentOf(now)]
      if (wasTreated === nowTreated) return
      const key = `${policy} ${wasTreated} ${nowTreated}`
      const change = changes.get(key) ?? {
        ...{ policy, was: wasTreated, now: nowTreated, requests: 0, recipients: [] },
        byRecipient: new Map(),
      }
      change.requests += 1
      change.byRecipient.set(to, (change.byRecipient.get(to) ?? 0) + 1)
      changes.set(key, change)
    },

    observe(policy: string, rule: string): void {
      rowFor(policy, rule).observed += 1
    },

    result() {
      return {
        fromMs: requests > 0 ? fromMs : undefined,
        toMs: requests > 0 ? toMs : undefined,
        requests,
        recipients: recipients.size,
        rows: [...rows.values()].sort(byPolicyAndRule),
        changes: [...changes.values()].map(({ byRecipient, ...change }) => ({
          ...change,
          recipients: [...byRecipient]
            .map(([hash, times]) => ({ hash, requests: times }))
            .sort((a, b) => b.requests - a.requests),
        })),
      }
    },
  }
}

const treatmentOf = (outcome: RefusedBy): Treatment =>
  !outcome ? 'admitted' : outcome.challenge ? 'asked' : 'refused'

function byPolicyAndRule(a: Row, b: Row): number {
  return a.policy.localeCompare(b.policy) || (a.rule ?? '').localeCompare(b.rule ?? '')
}
