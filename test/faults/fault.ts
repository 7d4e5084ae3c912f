/**
 * A fault is one thing that breaks, with the promises that must hold then. The list (`faults.ts`) has three uses. The
 * suite proves each fault in a short form. `npm run faults -- F12 --seed 7` proves one in full. `npm run chaos` draws
 * from the faults that can happen at any moment.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { type Fleet, type FleetOptions, freshPhone, startFleet } from '../tools/fleet.ts'
import { eventually } from '../tools/wait.ts'
import {
  expectBooksAgree,
  expectCountersAgree,
  type Report,
  sendAtRate,
  settle,
  settleOne,
} from './ledger.ts'

export interface Fault {
  /** The number of the fault in the list, or of the invariant that it attacks. */
  readonly id: string
  readonly breaks: string
  readonly holds: string
  /** Numbers of the invariants that it proves. */
  readonly proves: string
  /** Throws if a promise is broken. */
  prove(lab: Lab): Promise<Report | undefined>
  /** The same fault under load: breaks a part of a running fleet and repairs it. */
  strike?(fleet: Fleet, lab: Lab): Promise<void>
}

/** The random choices of a run. All come from the seed, so that a run can be repeated. */
export interface Lab {
  readonly seed: number
  /** True for the full form: outages are as long as in the list, and not as short as possible. */
  readonly isFull: boolean
  length(short: number, full: number): number
  /** At least `from`, below `to`. */
  between(from: number, to: number): number
  pick<Item>(items: readonly Item[]): Item
}

export function openLab(seed: number, isFull: boolean): Lab {
  let state = seed >>> 0
  // Mulberry32: good enough to choose victims and moments.
  const random = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const between = (from: number, to: number) => from + Math.floor(random() * (to - from))
  return {
    seed,
    isFull,
    length: (short, full) => (isFull ? full : short),
    between,
    pick: (items) => items[between(0, items.length)] as (typeof items)[number],
  }
}

/** One test per fault. `npm run faults` sets the seed and asks for the full form. */
export function testFaults(faults: readonly Fault[]): void {
  const seed = Number(process.env.FAULT_SEED ?? 1)
  const isFull = process.env.FAULT_FORM === 'full'
  for (const fault of faults) {
    const title = `${fault.id}: ${fault.breaks} → ${fault.holds} (${fault.proves})`
    test(title, { timeout: isFull ? 1_800_000 : 180_000 }, async () => {
      const report = await fault.prove(openLab(seed, isFull))
      if (report && isFull) console.log(fault.id, `seed ${seed}`, report)
    })
  }
}

export interface LoadOptions extends FleetOptions {
  readonly perSecond?: number
  /** The fault kills processes, so some answers and counters are lost. */
  readonly kills?: boolean
  /** True if the far end may accept a message twice. Only for faults that hide the outcome of a call. */
  readonly mayDouble?: boolean
}

/** Runs a fault on a fleet under a steady load. Then compares all records, and tests that everything works again. */
export async function strikeUnderLoad(
  lab: Lab,
  strike: (fleet: Fleet, lab: Lab) => Promise<void>,
  options: LoadOptions = {},
): Promise<{ fleet: Fleet; report: Report; p99Ms: number }> {
  const fleet = await startFleet(options)
  let isOver = false
  const struck = (async () => {
    try {
      await sleep(500)
      await strike(fleet, lab)
      await sleep(500)
    } finally {
      isOver = true
    }
  })()
  const [ledger] = await Promise.all([
    sendAtRate(fleet, options.perSecond ?? 50, () => isOver),
    struck,
  ])
  const report = await settle(fleet, ledger)
  expect(report.accepted).toBeGreaterThan(0)
  await expectBooksAgree(fleet, ledger, report)
  if (!options.kills) await expectCountersAgree(fleet, ledger, report)
  if (!options.mayDouble) expect(report.doubled).toBe(0)
  await expectAllWorks(fleet)
  const tookMs = ledger.entries.map((entry) => entry.tookMs).sort((a, b) => a - b)
  return { fleet, report, p99Ms: tookMs[Math.floor(tookMs.length * 0.99)] ?? 0 }
}

/**
 * The longest wait of a caller (I9). The short form shares its machine, and demands less than a caller of this fleet
 * waits.
 */
export const answersWithinMs = (lab: Lab) => lab.length(8_000, 2_500)

/** A send is accepted and sent within 30 s, after all that happened before. */
export async function expectAllWorks(fleet: Fleet): Promise<void> {
  const id = await eventually(
    async () => {
      const reply = await fleet.send(freshPhone())
      return reply.status === 202 && (reply.body.id as string)
    },
    { everyMs: 100 },
  )
  expect(await settleOne(fleet, id)).toBe('sent')
}

/** Many sends at once to different numbers: all are 503, within the longest wait of a caller. */
export async function expectUnavailable(fleet: Fleet, lab: Lab, sends = 40): Promise<void> {
  const replies = await Promise.all(Array.from({ length: sends }, () => fleet.send(freshPhone())))
  for (const { status, body, tookMs } of replies) {
    expect({ status, code: body.code }).toEqual({ status: 503, code: 'unavailable' })
    expect(tookMs).toBeLessThan(answersWithinMs(lab))
  }
}
