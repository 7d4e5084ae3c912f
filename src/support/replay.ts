/**
 * Decides recorded requests again with other rules: by the limiter in process, with the recorded times. Requests before
 * the counted span are decided too, so that the counts are right at its beginning.
 *
 * Limits of a replay: a request that is now admitted could have had repeats, and a request that is now refused could have
 * been sent later. If only a share of recipients was recorded, rules that count several recipients see only that share.
 */
import type { Channel } from '../base/channel.ts'
import { createLimiter, InvalidPermits, type Policies, type RawPolicies } from '../limiter/index.ts'
import { afterPass } from '../rules/guess-limits.ts'
import type { Fields } from '../rules/quota.ts'
import type { Outcome } from './decision.ts'
import type { DecisionRow } from './decision-log.ts'

type Treatment = 'refused' | 'challenged' | 'admitted'
type Counts = Record<Treatment, number>
type Decided = { treatment: Treatment; rule: string | null }
type Request = DecisionRow & { policy: string; fields: Fields }

/** Decisions of a rule, as recorded and now. `rule: null` stands for all decisions of the policy. */
interface Row {
  policy: string
  rule: string | null
  was: Counts
  now: Counts
  /** Requests that passed a full rule in `mode: observe`. */
  observed: number
}

interface Change {
  policy: string
  was: Treatment
  now: Treatment
  /** Requests by recipient, a short hash. */
  recipients: Map<string, number>
}

export type Replayed = Awaited<ReturnType<typeof replay>>

/** Limit for repeats of one refused request. Further repeats count like the last one. */
const maxRepeats = 50
/** Longer than any time between a recorded request and the pass of its code. */
const rememberRequestsMs = 8 * 86_400_000
const maxSubjects = 2_000_000
const wasTreated: Readonly<Partial<Record<Outcome, Treatment>>> = {
  ...{ refused: 'refused', locked: 'refused', challenged: 'challenged' },
}
/** Values that are empty have no place in the table. Rows of releases without lanes have none. */
const empty = {
  ...{ ip: '', ipWide: '', country: '', scene: '', prefix: '', block: '', mailbox: '' },
  lane: 'stranger',
}

/** `decisions` are in the order of time, and are counted since `sinceMs`. The policies and prices are from the new file. */
export async function replay(options: {
  decisions: AsyncIterable<DecisionRow> | Iterable<DecisionRow>
  policies: Policies
  raw: RawPolicies
  sinceMs: number
  priceOf: (channel: Channel, country: string) => number
}) {
  const { decisions, policies, raw, sinceMs, priceOf } = options
  const tally = createTally(policies)
  const sent = new Map<string, Pick<Request, 'policy' | 'fields'>>()
  const missing = new Set<string>()
  let [nowMs, nth] = [0, 0]
  const limiter = createLimiter({
    ...{ policies: raw, maxSubjects, rememberRequestsMs, clock: () => nowMs },
    onObserved({ policy, rule }) {
      if (nowMs >= sinceMs) tally.rowOf(policy, rule).observed += 1
    },
  })

  for await (const decision of decisions) {
    const { policy, channel, app, hash: to, outcome, noticeId } = decision
    nowMs = decision.atMs
    nth += 1
    const ofCode = sent.get(noticeId ?? '')
    if (outcome === 'released' && ofCode && noticeId) {
      await limiter.release(ofCode.policy, ofCode.fields, noticeId)
    }
    if (policy === null || decision.fields === null) continue
    if (!Object.hasOwn(policies, policy)) {
      missing.add(policy)
      continue
    }
    const price = priceOf(channel as Channel, String(decision.fields.country ?? ''))
    const fields = { ...empty, ...decision.fields, app, channel, to, price }
    const id = outcome === 'admitted' && noticeId ? noticeId : `${nth}`
    if (outcome === 'admitted') sent.set(id, { policy, fields })
    decideAgain({ ...decision, policy, fields }, id)
    if (outcome !== 'passed') continue
    // The effects of a right code on the limits (src/captcha/check.ts).
    if (ofCode && noticeId) await limiter.refund(ofCode.policy, ofCode.fields, noticeId)
    const { cleared, givenBack } = afterPass(policies[policy] ?? [])
    if (givenBack.length > 0) await limiter.release(policy, fields, id, givenBack)
    for (const name of cleared) await limiter.reset(policy, fields, name)
  }
  return { ...tally.result(), missing: [...missing] }

  function decideAgain(request: Request, id: string): void {
    let now: Decided = { treatment: 'admitted', rule: null }
    for (let time = 0; time < request.times; time++) {
      if (time < maxRepeats) now = decidedOf(request, time === 0 ? id : `${id} ${time}`)
      if (nowMs >= sinceMs) tally.add(request, now)
    }
  }

  function decidedOf({ policy, fields, isSolved }: Request, requestId: string): Decided {
    try {
      const decision = limiter.tryAcquire(policy, fields, { requestId, isSolved: !!isSolved })
      if (decision.admitted) return { treatment: 'admitted', rule: null }
      return { treatment: decision.challenge ? 'challenged' : 'refused', rule: decision.rule }
    } catch (error) {
      // The price of one message is above the limit of the rule.
      const rule = policies[policy]?.find(({ permits }) => typeof permits === 'string')
      if (error instanceof InvalidPermits && rule) return { treatment: 'refused', rule: rule.name }
      throw error
    }
  }
}

function createTally(policies: Policies) {
  const [rows, changes, recipients] = [new Map<string, Row>(), new Map<string, Change>(), new Set()]
  let requests = 0

  /** The row of a rule belongs to the policy that declares it. If the rule was removed, it belongs to the request's policy. */
  function rowOf(asked: string, rule: string | null): Row {
    const policy = policies[asked]?.find(({ name }) => name === rule)?.policy ?? asked
    const key = `${policy} ${rule ?? ''}`
    const none = () => ({ refused: 0, challenged: 0, admitted: 0 })
    const row = rows.get(key) ?? { policy, rule, was: none(), now: none(), observed: 0 }
    rows.set(key, row)
    return row
  }

  return {
    rowOf,
    add({ policy, rule, outcome, hash }: Request, now: Decided): void {
      requests += 1
      recipients.add(hash)
      const was = { treatment: wasTreated[outcome] ?? 'admitted', rule }
      for (const [when, one] of Object.entries({ was, now }) as ['was' | 'now', Decided][]) {
        rowOf(policy, null)[when][one.treatment] += 1
        if (one.rule !== null) rowOf(policy, one.rule)[when][one.treatment] += 1
      }
      if (was.treatment === now.treatment) return
      const key = `${policy} ${was.treatment} ${now.treatment}`
      const none = { policy, was: was.treatment, now: now.treatment, recipients: new Map() }
      const change = changes.get(key) ?? none
      change.recipients.set(hash, (change.recipients.get(hash) ?? 0) + 1)
      changes.set(key, change)
    },
    result: () => ({
      ...{ requests, recipients: recipients.size },
      rows: [...rows.values()].sort(
        (a, b) => a.policy.localeCompare(b.policy) || (a.rule ?? '').localeCompare(b.rule ?? ''),
      ),
      changes: [...changes.values()].map((change) => {
        const hashes = [...change.recipients].sort(([, a], [, b]) => b - a)
        const all = hashes.map(([hash, times]) => ({ hash, requests: times }))
        const sum = hashes.reduce((total, [, times]) => total + times, 0)
        return { ...change, requests: sum, recipients: all }
      }),
    }),
  }
}

const shown = 10
const number = (value: number) => value.toLocaleString('en')
const arrow = (was: number, now: number) =>
  was === now ? now && number(now) : `${number(was)} → ${number(now)}`

/**
 * The replay in words and columns. `oneOf`: the recorded share of the recipients; `unnamed`: the number of decisions that were
 * only counted.
 */
export function reportOf(facts: Replayed & { oneOf: number; unnamed: number }) {
  const { requests, recipients, rows, changes } = facts
  const table = rows.map(({ policy, rule, was, now, observed }) => {
    const admitted = rule === null && arrow(was.admitted, now.admitted)
    const cells = [arrow(was.refused, now.refused), arrow(was.challenged, now.challenged), admitted]
    return [policy, rule ?? '(all)', ...cells, observed].map((cell) => `${cell || ''}`)
  })
  table.unshift(['policy', 'rule', 'refused', 'challenged', 'admitted', 'observed'])
  const widthOf = (at: number) => Math.max(...table.map((line) => line[at]?.length ?? 0))
  const changed = changes.map(({ policy, was, now, requests: all, recipients: who }) => {
    const most = who.slice(0, shown).map((one) => `${one.hash} (${number(one.requests)})`)
    return `  ${policy}: ${number(all)} ${was} → ${now}, of ${number(who.length)} recipients: ${most.join(', ')}`
  })
  const notes = notesOf(facts)
  const lines = [
    `${number(requests)} requests of ${number(recipients)} recipients.`,
    ...notes,
    '',
    ...table.map((line) =>
      line
        .map((cell, at) => cell.padEnd(widthOf(at)))
        .join('  ')
        .trimEnd(),
    ),
    '',
    ...(changed.length > 0
      ? ['Changed decisions, with the recipients that have most of these requests:', ...changed]
      : ['No decision would change.']),
  ]
  return `${(requests > 0 ? lines : ['No requests were recorded in that time.', ...notes]).join('\n')}\n`
}

function notesOf({ missing, oneOf, unnamed }: Parameters<typeof reportOf>[0]): string[] {
  const sample = `This is a sample: 1 of ${oneOf} recipients, because there were too many to record. Rules that count several recipients together (by address, prefix, country, app) are underestimated.`
  const counted = `${unnamed} refusals and checks were only counted, because there were too many. They are left out.`
  return [
    ...missing.map((policy) => `Requests by ${policy} are left out: the file has no such policy.`),
    ...(oneOf === 1 ? [] : [sample]),
    ...(unnamed === 0 ? [] : [counted]),
  ]
}
