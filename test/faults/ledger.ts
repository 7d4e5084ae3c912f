/**
 * A ledger of every answer that callers got. Afterwards it is compared with the rows, their state changes, the calls
 * at the far end, and the counters of the processes.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { admin, type Fleet, freshPhone } from '../tools/fleet.ts'
import type { PosternProcess } from '../tools/processes.ts'
import { eventually } from '../tools/wait.ts'

export interface Entry {
  readonly to: string
  /** 0 if the connection broke. Such a send may have been accepted without an answer. */
  readonly status: number
  readonly id?: string
  readonly tookMs: number
}

export interface Ledger {
  readonly entries: readonly Entry[]
  /** Ids of every 202, in order. */
  accepted(): string[]
  count(status: number): number
}

export function openLedger(): Ledger & { enter(entry: Entry): void } {
  const entries: Entry[] = []
  return {
    entries,
    enter: (entry) => void entries.push(entry),
    accepted: () => entries.flatMap(({ status, id }) => (status === 202 && id ? [id] : [])),
    count: (wanted) => entries.filter(({ status }) => status === wanted).length,
  }
}

/** Sends captchas to new numbers at a steady rate until `isOver`, with any answers. */
export async function sendAtRate(
  fleet: Fleet,
  perSecond: number,
  isOver: (elapsedMs: number) => boolean,
): Promise<Ledger> {
  const ledger = openLedger()
  await atRate(perSecond, isOver, () => {
    const to = freshPhone()
    return fleet.send(to).then(
      ({ status, body, tookMs }) => ledger.enter({ to, status, id: body.id, tookMs }),
      () => ledger.enter({ to, status: 0, tookMs: 0 }),
    )
  })
  return ledger
}

/** Begins one after the other at a steady rate until `isOver`. Resolves when all have ended. */
export async function atRate(
  perSecond: number,
  isOver: (elapsedMs: number) => boolean,
  run: (count: number) => Promise<void>,
): Promise<void> {
  const startMs = performance.now()
  const under = new Set<Promise<void>>()
  for (let begun = 0; ; ) {
    const elapsedMs = performance.now() - startMs
    if (isOver(elapsedMs)) break
    for (; begun < (elapsedMs / 1_000) * perSecond; begun++) {
      const one = run(begun).then(() => void under.delete(one))
      under.add(one)
    }
    await sleep(5)
  }
  await Promise.all(under)
}

export const forSeconds = (seconds: number) => (elapsedMs: number) => elapsedMs >= seconds * 1_000

export interface Report {
  readonly accepted: number
  /** The number of other answers than 202, by status. Broken connections are not counted. */
  readonly refused: Readonly<Record<string, number>>
  readonly broken: number
  /** The number of accepted notices by their last state. */
  readonly final: Readonly<Record<string, number>>
  /** Accepted notices that are not in a final state. */
  readonly lost: number
  /** Notices that the far end accepted more than once. */
  readonly doubled: number
}

const finalStates: readonly string[] = ['sent', 'delivered', 'failed', 'expired']

/** Waits until every accepted notice is final, then compares all records. */
export async function settle(fleet: Fleet, ledger: Ledger, withinMs = 60_000): Promise<Report> {
  const accepted = ledger.accepted()
  let states = new Map<string, string>()
  const open = () => accepted.filter((id) => !finalStates.includes(states.get(id) ?? ''))
  await eventually(
    async () => {
      const rows = await fleet.query<{ id: string; state: string }>(
        'SELECT id, state FROM notice WHERE id = ANY($1::uuid[])',
        [accepted],
      )
      states = new Map(rows.map(({ id, state }) => [id, state]))
      return open().length === 0
    },
    { withinMs, everyMs: 100 },
  ).catch(() => {})
  const refused: Record<string, number> = {}
  for (const { status } of ledger.entries) {
    if (status !== 202 && status !== 0) refused[status] = (refused[status] ?? 0) + 1
  }
  return {
    accepted: accepted.length,
    refused,
    broken: ledger.count(0),
    final: tally([...states.values()].filter((state) => finalStates.includes(state))),
    lost: open().length,
    doubled: [...fleet.farEnd.taken.values()].filter((times) => times > 1).length,
  }
}

export async function settleOne(fleet: Fleet, id: string, withinMs = 30_000): Promise<string> {
  return eventually(
    async () => {
      const [row] = await fleet.query<{ state: string }>('SELECT state FROM notice WHERE id = $1', [
        id,
      ])
      if (!finalStates.includes(row?.state ?? '')) throw new Error(`it is ${row?.state}`)
      return row?.state as string
    },
    { withinMs },
  )
}

/**
 * Promises of any run. Nothing is lost (I2). Each notice has one final state change (I1). There are no more calls
 * than tries (I8). Nothing is sent after an answer that denied it (I9).
 */
export async function expectBooksAgree(fleet: Fleet, ledger: Ledger, report: Report) {
  expect(report.lost).toBe(0)
  const [moves] = await fleet.query<{ doubles: number }>(
    `SELECT count(*)::int AS doubles FROM (
       SELECT notice_id FROM final_move GROUP BY notice_id HAVING count(*) > 1) AS twice`,
  )
  expect(moves?.doubles).toBe(0)
  expect(Math.max(0, ...fleet.farEnd.calls.values())).toBeLessThanOrEqual(triesPerNotice)
  const refused = ledger.entries.filter(({ status }) => status !== 202 && status !== 0)
  if (report.refused[500]) expect(failuresLogged(fleet)).toEqual([])
  expect(report.refused[500]).toBeUndefined()
  expect(refused.filter(({ to }) => fleet.farEnd.recipients.has(to))).toEqual([])
}

/** Unexpected errors in the logs of the processes. A server out of reach is expected. */
function failuresLogged(fleet: Fleet): string[] {
  const lines = fleet.all.flatMap((process) => process.output().split('\n'))
  return [...new Set(lines.filter((line) => /"request failed"/.test(line)))].filter(
    (line) => !/out of reach|LimiterUnavailable/.test(line),
  )
}

/** `delivery.tries` of the policy file. */
const triesPerNotice = 5

/** Without kills: the counters of all processes equal the ledger (I15), and no message was sent twice (I8). */
export async function expectCountersAgree(fleet: Fleet, ledger: Ledger, report: Report) {
  expect(ledger.count(0)).toBe(0)
  // A process counts a moment after the answer or the row that the ledger has seen.
  await eventually(async () => {
    expect(await total(fleet.apis, 'postern_accepted_total')).toBe(report.accepted)
    for (const [status, count] of Object.entries(report.refused)) {
      const series = `postern_http_requests_total{route="/v1/captchas",method="POST",status="${status}"`
      expect(await total(fleet.apis, series)).toBe(count)
    }
    for (const [state, count] of Object.entries(report.final)) {
      const finished = (series: string) => series.includes(`state="${state}"`)
      expect(await total(fleet.workers, 'postern_notices_finished_total', finished)).toBe(count)
    }
    const calls = [...fleet.farEnd.calls.values()].reduce((sum, times) => sum + times, 0)
    expect(await total(fleet.workers, 'postern_sends_total')).toBe(calls)
  })
}

/** The sum of a metric's series over processes. */
export async function total(
  processes: readonly PosternProcess[],
  prefix: string,
  isCounted: (series: string) => boolean = () => true,
): Promise<number> {
  let sum = 0
  for (const process of processes) {
    const text = await (await admin(process, '/metrics')).text()
    for (const line of text.split('\n')) {
      const end = line.lastIndexOf(' ')
      if (line.startsWith(prefix) && isCounted(line.slice(0, end))) sum += Number(line.slice(end))
    }
  }
  return sum
}

function tally(values: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1
  return counts
}
