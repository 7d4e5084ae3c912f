/** What happens to PostgreSQL: gone, silent, slow, all its connections taken. */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { expect } from 'vitest'
import { type Fleet, freshPhone } from '../support/fleet.ts'
import {
  expectAllWorks,
  expectUnavailable,
  type Fault,
  type Lab,
  strikeUnderLoad,
} from './fault.ts'

async function outage(
  { postgres }: Fleet,
  lab: Lab,
  how: 'stopped' | 'frozen',
  during = async () => {},
): Promise<void> {
  const untilMs = performance.now() + lab.length(2_000, 20_000)
  if (how === 'stopped') await postgres.stop()
  else postgres.freeze()
  try {
    await during()
    await sleep(Math.max(0, untilMs - performance.now()))
  } finally {
    if (how === 'stopped') await postgres.start()
    else postgres.thaw()
  }
}

async function proveOutage(lab: Lab, how: 'stopped' | 'frozen') {
  const to = freshPhone()
  const { fleet, report, p99Ms } = await strikeUnderLoad(
    lab,
    async (fleet) => {
      // Sends are under way when it goes, so outcomes wait to be written.
      fleet.farEnd.behave = async () => {
        await sleep(500)
        return { status: 200 }
      }
      await sleep(500)
      await outage(fleet, lab, how, async () => {
        await expectUnavailable(fleet)
        expect((await fleet.send(to)).status).toBe(503)
        const check = await fleet.post('/v1/captchas/check', { channel: 'sms', to, code: '0000' })
        expect(check.status).toBe(410)
      })
    },
    { kills: true },
  )
  expect(report.refused[503]).toBeGreaterThan(0)
  expect(p99Ms).toBeLessThan(2_500)
  expect(report.final).toEqual({ sent: report.accepted })
  // One a minute is all this number has: had the 503 kept it, this would be 429.
  expect((await fleet.send(to)).status).toBe(202)
  return report
}

const f12: Fault = {
  id: 'F12',
  breaks: 'PostgreSQL stopped, then frozen, for 20 s while messages are on their way',
  holds:
    'sends are 503 within 2.5 s and give their quota back, checks go on, outcomes are written later and nothing is sent again',
  proves: 'I1, I2, I8, I9',
  strike: (fleet, lab) => outage(fleet, lab, lab.pick(['stopped', 'frozen'] as const)),
  async prove(lab) {
    await proveOutage(lab, 'stopped')
    return proveOutage(lab, 'frozen')
  },
}

const f13: Fault = {
  id: 'F13',
  breaks: 'PostgreSQL slow, then every statement waiting for a lock until the pool is used up',
  holds: 'slow is accepted or 503 within 2.5 s, never lost; afterwards all works',
  proves: 'I1, I2, I9',
  async prove(lab) {
    const { fleet, report, p99Ms } = await strikeUnderLoad(
      lab,
      async ({ network }) => {
        for (const delayMs of [100, 400]) {
          network?.forward(delayMs)
          await sleep(lab.length(1_500, 10_000))
        }
        network?.forward()
      },
      { proxied: true, kills: true, mayDouble: true },
    )
    expect(p99Ms).toBeLessThan(2_500)

    const client = new pg.Client({ connectionString: fleet.postgres.url })
    await client.connect()
    try {
      await client.query('BEGIN; LOCK TABLE notice IN ACCESS EXCLUSIVE MODE')
      await expectUnavailable(fleet, 100)
    } finally {
      await client.end()
    }
    await expectAllWorks(fleet)
    return report
  },
}

export const postgresqlFaults: readonly Fault[] = [f12, f13]
