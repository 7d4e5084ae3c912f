/** Faults of the connections to PostgreSQL: none is left, they are ended, and the answers of commits are lost. */
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { expect } from 'vitest'
import { admin, type Fleet, startFleet } from '../tools/fleet.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'
import { expectAllWorks, expectUnavailable, type Fault, strikeUnderLoad } from './fault.ts'
import {
  expectBooksAgree,
  expectCountersAgree,
  forSeconds,
  type Report,
  sendAtRate,
  settle,
} from './ledger.ts'

const otherProgram = 'another program'

/** Other programs take every connection of PostgreSQL, and the connections of Postern end. The result gives them back. */
async function takeEveryConnection(url: string): Promise<() => Promise<void>> {
  const taken: pg.Client[] = []
  const giveBack = async () => {
    await Promise.all(taken.splice(0).map((client) => client.end().catch(() => {})))
  }
  releaseLater(giveBack)
  // Postern and this loop race for each free connection.
  do {
    while (await takeOne(url, taken));
  } while ((await endOthers(taken[0] as pg.Client, 1)) > 0)
  return giveBack
}

/** False if PostgreSQL has no connection left. */
async function takeOne(url: string, taken: pg.Client[]): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, application_name: otherProgram })
  client.on('error', () => {})
  try {
    await client.connect()
    taken.push(client)
    return true
  } catch (error) {
    if ((error as { code?: string }).code === '53300') return false
    throw error
  }
}

/** Ends a share of the connections of Postern, as an administrator or a fail-over does. Returns their number. */
async function endOthers(client: Pick<pg.Client, 'query'>, share: number): Promise<number> {
  const { rowCount } = await client.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
       AND application_name <> $1 AND random() < $2`,
    [otherProgram, share],
  )
  return rowCount ?? 0
}

const f43: Fault = {
  id: 'F43',
  breaks: 'other programs take every connection of PostgreSQL, after those of Postern have ended',
  holds: 'sends are 503 and not ready names the reason, nothing is lost, all works when they end',
  proves: 'I1, I2, I9, I25',
  async prove(lab) {
    const { report } = await strikeUnderLoad(
      lab,
      async (fleet) => {
        const giveBack = await takeEveryConnection(fleet.postgres.url)
        await eventually(async () => {
          const response = await admin(fleet.apis[0], '/readyz')
          expect(response.status).toBe(503)
          expect(await response.text()).toMatch(/postgresql/)
        })
        await expectUnavailable(fleet, lab)
        await sleep(lab.length(1_000, 20_000))
        await giveBack()
      },
      { kills: true, postgresFlags: ['-c', 'max_connections=60'] },
    )
    expect(report.refused[503]).toBeGreaterThan(0)
    return report
  },
}

async function endAtRandom(fleet: Fleet, forMs: number, pauseMs: () => number): Promise<void> {
  const administrator = new pg.Client({ connectionString: fleet.postgres.url })
  await administrator.connect()
  try {
    const untilMs = performance.now() + forMs
    while (performance.now() < untilMs) {
      await endOthers(administrator, 0.3)
      await sleep(pauseMs())
    }
  } finally {
    await administrator.end()
  }
}

const f44: Fault = {
  id: 'F44',
  breaks: 'connections of PostgreSQL are ended at random',
  holds: 'sends are accepted or 503, nothing is lost and nothing sent twice',
  proves: 'I1, I2, I8, I9',
  strike: (fleet, lab) => endAtRandom(fleet, lab.length(3_000, 20_000), () => lab.between(50, 400)),
  async prove(lab) {
    const { report } = await strikeUnderLoad(lab, (fleet) => this.strike?.(fleet, lab) as never, {
      kills: true,
    })
    return report
  },
}

const f48: Fault = {
  id: 'F48',
  breaks: 'the answer of each statement that writes is lost once, after its commit',
  holds: 'nothing is lost, nothing sent or reported twice, all counters agree',
  proves: 'I1, I2, I8, I10, I15',
  async prove(lab) {
    const fleet = await startFleet({ losesAnswers: true, apis: 2, workers: 2 })
    const ledger = await sendAtRate(fleet, 50, forSeconds(lab.length(6, 30)))
    const report: Report = await settle(fleet, ledger)
    await expectBooksAgree(fleet, ledger, report)
    await expectCountersAgree(fleet, ledger, report)
    expect(report.doubled).toBe(0)
    const { lost, seen } = fleet.answers as NonNullable<Fleet['answers']>
    expect([...lost].sort()).toEqual([...seen].sort())
    for (const name of ['notice-create', 'notice-claim', 'notice-record'])
      expect([...lost]).toContain(name)
    await expectAllWorks(fleet)
    return report
  },
}

export const connectionFaults: readonly Fault[] = [f43, f44, f48]
