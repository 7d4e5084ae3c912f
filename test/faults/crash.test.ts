import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { doubled, type Fleet, sendAtRate, settle, startFleet } from '../support/fleet.ts'
import type { PosternProcess } from '../support/processes.ts'

/** Kills the oldest process of a kind and starts another, as a supervisor would. */
async function replace(processes: PosternProcess[], start: () => Promise<unknown>): Promise<void> {
  const victim = processes.shift()
  await victim?.kill()
  await start()
}

async function killInTurns(fleet: Fleet, kills: number, everyMs: number): Promise<void> {
  for (let kill = 0; kill < kills; kill++) {
    await sleep(everyMs)
    if (kill % 2 === 0) await replace(fleet.workers, fleet.startWorker)
    else await replace(fleet.apis, fleet.startApi)
  }
}

test('API and worker killed in turns under 200 sends a second: every 202 reaches a final state, none is lost (I1, I2, F1, F2)', async () => {
  const fleet = await startFleet({ apis: 2, workers: 2 })
  const [ledger] = await Promise.all([sendAtRate(fleet, 200, 8), killInTurns(fleet, 6, 900)])

  expect(ledger.accepted.length).toBeGreaterThan(800)
  const states = await settle(fleet, ledger.accepted)
  console.log(
    `accepted ${ledger.accepted.length}, ended`,
    states,
    `doubled ${doubled(fleet)}`,
    ledger.others,
  )
  expect(Object.values(states).reduce((sum, count) => sum + count, 0)).toBe(ledger.accepted.length)
  expect((states.sent ?? 0) / ledger.accepted.length).toBeGreaterThan(0.95)
}, 120_000)

test('no faults: every 202 is sent exactly once (I8)', async () => {
  const fleet = await startFleet({ apis: 1, workers: 2 })
  const ledger = await sendAtRate(fleet, 200, 3)

  expect(ledger.accepted.length).toBe(600)
  expect(await settle(fleet, ledger.accepted)).toEqual({ sent: 600 })
  expect(doubled(fleet)).toBe(0)
  expect(fleet.farEnd.calls.size).toBe(600)
}, 60_000)
