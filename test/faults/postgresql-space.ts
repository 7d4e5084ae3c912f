/** Faults of PostgreSQL's disk: it is full, and dead entries fill indexes that a snapshot elsewhere keeps. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { admin, freshPhone } from '../tools/fleet.ts'
import { canMountDisk } from '../tools/own-servers.ts'
import { eventually } from '../tools/wait.ts'
import { type Fault, strikeUnderLoad } from './fault.ts'

const diskMb = canMountDisk() ? 160 : undefined

const f45: Fault = {
  id: 'F45',
  breaks: `the disk of PostgreSQL is full for half a minute${diskMb ? '' : ' (skipped: a small disk cannot be mounted here)'}`,
  holds: 'sends are 503, not ready names the reason, nothing is lost, all works when there is room',
  proves: 'I1, I2, I9, I25',
  async prove(lab) {
    if (!diskMb) return undefined
    const { report } = await strikeUnderLoad(
      lab,
      async (fleet) => {
        const filler = join(fleet.postgres.dataDir, 'filler')
        fill(filler)
        await eventually(
          async () => {
            const { status, body } = await fleet.send(freshPhone())
            expect({ status, code: body.code }).toEqual({ status: 503, code: 'unavailable' })
            const ready = await admin(fleet.apis[0], '/readyz')
            expect(ready.status).toBe(503)
            expect(await ready.text()).toMatch(/postgresql .*(disk|space|full)/)
          },
          { everyMs: 200 },
        )
        await sleep(lab.length(1_000, 30_000))
        rmSync(filler)
      },
      { kills: true, postgresDiskMb: diskMb },
    )
    expect(report.refused[503]).toBeGreaterThan(0)
    return report
  },
}

/** Writes zeros until there is no room. */
function fill(file: string): void {
  const mebibyte = Buffer.alloc(2 ** 20)
  for (const size of [mebibyte, mebibyte.subarray(0, 4_096)]) {
    try {
      for (;;) writeFileSync(file, size, { flag: 'a' })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
  }
}

export const spaceFaults: readonly Fault[] = [f45]
