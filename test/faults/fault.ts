/**
 * A fault is one thing that breaks, and what must hold then. The list of them (`faults.ts`) is used
 * three ways: the suite proves each in its short form, `npm run faults -- F12 --seed 7` proves one in
 * its full form, and `npm run chaos` draws from those that can strike at any moment.
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
  /** Its number in the list of faults, or the invariant that is attacked. */
  readonly id: string
  readonly breaks: string
  readonly holds: string
  /** Numbers of the invariants it proves. */
  readonly proves: string
  /** Throws when something does not hold. */
  prove(lab: Lab): Promise<Report | undefined>
  /** The same as a blow under load: breaks something of a running fleet and mends it again. */
  strike?(fleet: Fleet, lab: Lab): Promise<void>
}

/** What makes one run of a fault like the next: all chance comes from the seed. */
export interface Lab {
  readonly seed: number
  /** The full form: outages as long as the list says, not as short as they can prove something. */
  readonly isFull: boolean
  length(short: number, full: number): number
  /** At least `from`, below `to`. */
  between(from: number, to: number): number
  pick<Item>(items: readonly Item[]): Item
}

export function openLab(seed: number, isFull: boolean): Lab {
  let state = seed >>> 0
  // Mulberry32: four lines, good enough to choose victims and moments.
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
  /** The blow kills processes, so some answers and counters are gone with them. */
  readonly kills?: boolean
  /** May the far end take a message twice? Only where the fault hides from us what became of it. */
  readonly mayDouble?: boolean
}

/** Lets a fault strike a fleet under a steady load, then closes the books and looks whether all works again. */
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

/** What a caller waits at most (I9). The short form shares its machine, and asks for less than any server's own time-out. */
export const answersWithinMs = (lab: Lab) => lab.length(4_000, 2_500)

/** A send is accepted and sent, within 20 s of whatever was before. */
export async function expectAllWorks(fleet: Fleet): Promise<void> {
  const id = await eventually(
    async () => {
      const reply = await fleet.send(freshPhone())
      return reply.status === 202 && (reply.body.id as string)
    },
    { withinMs: 20_000, everyMs: 100 },
  )
  expect(await settleOne(fleet, id)).toBe('sent')
}

/** Many sends at once to different numbers: all 503, all within the time a caller may be kept waiting. */
export async function expectUnavailable(fleet: Fleet, lab: Lab, sends = 40): Promise<void> {
  const replies = await Promise.all(Array.from({ length: sends }, () => fleet.send(freshPhone())))
  for (const { status, body, tookMs } of replies) {
    expect({ status, code: body.code }).toEqual({ status: 503, code: 'unavailable' })
    expect(tookMs).toBeLessThan(answersWithinMs(lab))
  }
}
