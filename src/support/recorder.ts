/**
 * Notes decisions of the limits and results of checks for the table `decision`. No request waits for it: a process writes
 * at most once a second, in one statement, and a flood costs almost nothing.
 *
 * Every decision is counted. The number of rows with a recipient is bounded for each app, so a flood leaves room for other
 * apps and can't fill the disk. Other decisions are added to a row without a recipient, one per rule.
 * - Refusals and checks: an allowance that refills slowly, and with accepted sends. Equal ones of some seconds share a row.
 * - Admitted sends, for a replay: every one of a share of the recipients. The share is halved until its rows fit.
 */
import { createBoundedMap } from '../base/bounded-map.ts'
import type { Meter } from '../base/meter.ts'
import { repeat } from '../base/repeat.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { Policies } from '../limiter/index.ts'
import { findRule, namesRecipient } from '../rules/key-fields.ts'
import { isCheckPolicy } from '../rules/policies.ts'
import type { Fields, OnDecided } from '../rules/quota.ts'
import { type Allowance, createAllowance } from './allowance.ts'
import {
  type CheckResult,
  type Heard,
  type Noted,
  type Recipient,
  refusalOf,
  timesOf,
} from './decision.ts'
import type { DecisionLog } from './decision-log.ts'

const everyMs = 1_000
/** The first of equal decisions is written in the next turn, and its repeats as one row after this time. */
const againAfterMs = 5_000
/** Entries with a recipient, and all entries. They are kept for `againAfterMs`. */
const [maxNamed, maxEntries] = [9_000, 10_000]
/** Checks under way whose fields are known. */
const maxGuesses = 2_000
/** Rows of an app at once, and per second and process. `own`: by checks and rules of one recipient; `shared`: by other rules. */
const ownRows = { most: 160, perSecond: 5 }
const sharedRows = { most: 80, perSecond: 1 }
/** An accepted send leaves a row of some 1 kB anyway, so its code may leave this many, up to `most` in a second. */
const ownRowsPerSend = 2
/** Admitted sends. Each halving of the share allows some more rows, and the share pays them back before it is doubled. */
const admittedRows = { most: 300, perSecond: 5 }
const rowsPerHalving = 50
const smallestShare = 20

/** Equal decisions, or decisions that are only counted together. */
interface Entry {
  sumOf: string
  /** Absent if it has no recipient. */
  allowance?: Allowance
  /** Makes the row of the latest one. */
  make: () => Omit<Noted, 'times'>
  /** Number that is not written yet. */
  times: number
  dueMs: number
}

/** `history`: decisions that were only counted; `sums`: decisions that were not even counted. */
const droppedRecords = ['history', 'sums'] as const

export const recordMetrics = ({ counter }: Meter) => ({
  recordsDropped: counter(
    'postern_records_dropped_total',
    'Refusals and checks that were only counted because there were too many (history), and decisions that were not counted either because PostgreSQL did not answer (sums).',
    { record: droppedRecords },
  ),
})

export function createRecorder(deps: {
  log: Pick<DecisionLog, 'write'>
  secrets: Pick<Secrets, 'recipientHash'>
  /** The policies now in force. */
  policies: () => Policies
  onDropped: (record: (typeof droppedRecords)[number], decisions: number) => void
  /** Called for each turn whose rows could not be written. */
  onFailed: (error: unknown) => void
}) {
  const { log, secrets, policies, onDropped, onFailed } = deps
  const entries = new Map<string, Entry>()
  /** Checks that the limits admitted, until their result is known. */
  const guesses = createBoundedMap<Heard>(maxGuesses)
  const allowances = new Map<string, { own: Allowance; shared: Allowance }>()
  const admitted = createAllowance(admittedRows)
  /** Admitted sends of 1 of 2^share recipients are rows. */
  let share = 0
  let lost = 0

  function allowancesOf(app: string) {
    const known = allowances.get(app)
    if (known) return known
    const made = { own: createAllowance(ownRows), shared: createAllowance(sharedRows) }
    allowances.set(app, made)
    return made
  }

  /** `sumOf` is equal for what is counted together, `one` for what shares a row. */
  function note(sumOf: string, one: string, allowance: Allowance, make: Entry['make']): void {
    const name = `${sumOf} ${one}`
    const known = entries.get(name)
    if (known) {
      known.times += 1
      known.make = make
    } else if (entries.size < maxNamed && allowance.take()) {
      entries.set(name, { sumOf, allowance, make, times: 1, dueMs: 0 })
    } else count(sumOf, make)
  }

  function count(sumOf: string, make: Entry['make'], times = 1): void {
    const known = entries.get(sumOf)
    if (known) {
      known.times += times
      known.make = make
    } else if (entries.size < maxEntries) entries.set(sumOf, { sumOf, make, times, dueMs: 0 })
    else lost += times
  }

  /** The rows that are due. Entries without new decisions are forgotten. */
  function takeDue(isLast: boolean): Noted[] {
    const nowMs = performance.now()
    const due: Noted[] = []
    for (const [name, entry] of entries) {
      const { sumOf, allowance, make, times, dueMs } = entry
      if (nowMs < dueMs && !isLast) continue
      if (times === 0) entries.delete(name)
      // The first row has taken its allowance already. The last turn has no later one in which a count could be written.
      else if (allowance && dueMs > 0 && !isLast && !allowance.take()) count(sumOf, make, times)
      else {
        const { to, fields, ...facts } = make()
        due.push(allowance ? { ...facts, to, fields, times } : { ...facts, times })
      }
      entry.times = 0
      entry.dueMs = nowMs + againAfterMs
    }
    return due
  }

  async function turn(isLast: boolean): Promise<void> {
    const due = takeDue(isLast)
    const counted = due.filter(({ to, outcome }) => to === undefined && outcome !== 'admitted')
    try {
      if (due.length > 0) await log.write(due)
      if (counted.length > 0) onDropped('history', timesOf(counted))
    } catch (error) {
      lost += timesOf(due)
      onFailed(error)
    }
    if (lost > 0) onDropped('sums', lost)
    lost = 0
  }

  const turns = repeat(async () => {
    await turn(false)
    return everyMs
  }, everyMs)

  /** Whether the recipient belongs to the share. Every smaller share is a part of it, so histories are whole. */
  function isSampled({ channel, to }: Recipient): boolean {
    const level = Math.clz32(secrets.recipientHash(channel, to).readInt32BE(0))
    if (share > 0 && admitted.isFull()) {
      share -= 1
      admitted.give(-rowsPerHalving)
    }
    while (level >= share && share < smallestShare && !admitted.has()) {
      share += 1
      admitted.give(rowsPerHalving)
    }
    return level >= share
  }

  function noteAdmitted({ policy, fields, requestId: noticeId, isSolved }: Heard): void {
    const recipient = fields as unknown as Recipient
    const { app, channel, to } = recipient
    allowancesOf(app).own.give(ownRowsPerSend)
    const isRow = isSampled(recipient)
    const facts = { atMs: performance.now(), app, channel, to, policy, fields, isSolved, share }
    const make = () => ({ ...facts, outcome: 'admitted', noticeId }) as const
    const sumOf = `admitted ${policy} ${app} ${channel}`
    if (isRow) note(sumOf, noticeId, admitted, make)
    else count(sumOf, make)
  }

  const decided: OnDecided = (heard) => {
    const { policy, fields, requestId, decision, isSolved } = heard
    const { app, channel, to } = fields as unknown as Recipient
    if (decision.admitted) {
      // A check has its row when its result is known.
      if (isCheckPolicy(policy)) guesses.set(requestId, heard)
      else noteAdmitted(heard)
      return
    }
    const { newLock, challenge } = decision
    const { rule: ruleName } = newLock ?? decision
    const outcome = newLock ? 'locked' : challenge ? 'challenged' : 'refused'
    const rule = findRule(policies(), policy, ruleName)
    const { own, shared } = allowancesOf(app)
    const atMs = performance.now()
    const make = () => {
      const refusal = refusalOf(heard, policies())
      return { atMs, app, channel, to, outcome, policy, refusal, fields, isSolved } as const
    }
    const sumOf = `${outcome} ${policy} ${ruleName} ${app} ${channel}`
    note(sumOf, newLock ? requestId : to, rule && namesRecipient(rule) ? own : shared, make)
  }

  return {
    /** Receives each decision of the limiter about a send or a check. */
    decided,

    /** The uses of a request were given back. */
    released(fields: Fields, noticeId: string): void {
      const isOfCheck = guesses.get(noticeId) !== undefined
      guesses.delete(noticeId)
      const recipient = fields as unknown as Recipient
      if (isOfCheck || !isSampled(recipient)) return
      const { app, channel, to } = recipient
      const facts = { atMs: performance.now(), app, channel, to, noticeId }
      const make = () => ({ ...facts, outcome: 'released' }) as const
      note(`released ${app} ${channel}`, noticeId, admitted, make)
    },

    /** Receives the result of a check. A refused check is a refusal of the limiter, or is not recorded. */
    checked(
      { app, channel, to }: Recipient,
      id: string,
      { result: outcome, noticeId }: { result: CheckResult; noticeId?: string },
    ): void {
      if (outcome === 'refused') return
      const { policy, fields, isSolved } = guesses.get(id) ?? {}
      guesses.delete(id)
      const facts = { atMs: performance.now(), app, channel, to, outcome, noticeId }
      const make = () => ({ ...facts, policy, fields, isSolved })
      const { own, shared } = allowancesOf(app)
      // A stranger can check any recipient without a code. The tries of a code bound the number of other results.
      const isGone = outcome === 'gone'
      note(`${outcome} ${app} ${channel}`, isGone ? to : id, isGone ? shared : own, make)
    },

    async close(): Promise<void> {
      await turns.stop()
      await turn(true)
    },
  }
}
