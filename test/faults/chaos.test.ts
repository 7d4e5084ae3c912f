import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startFarEnd } from '../tools/far-end.ts'
import { type Fleet, type FleetOptions, startFleet } from '../tools/fleet.ts'
import { ownCluster } from '../tools/redis-topologies.ts'
import { proveCalmFor } from './calm.ts'
import { expectAllWorks, type Fault, openLab } from './fault.ts'
import { faults } from './faults.ts'
import { expectBooksAgree, forSeconds, type Ledger, sendAtRate, settle } from './ledger.ts'
import { beginWaysAtRate, expectWaysAgree, sectionsWithWays } from './ways.ts'

/**
 * `npm run chaos`: a steady load, and one fault after the other, drawn by the seed. With `--calm` there is no fault.
 */
const minutes = Number(process.env.CHAOS_MINUTES ?? 10)
const perSecond = Number(process.env.CHAOS_RATE ?? 200)
const hasAof = process.env.CHAOS_AOF !== 'no'
const isCluster = process.env.CHAOS_CLUSTER === 'yes'
const seed = Number(process.env.FAULT_SEED ?? 1)

const chaosMs = minutes * 60_000

const isCalm = process.env.CHAOS_CALM === 'yes'

test.runIf(isCalm)(
  `calm for ${minutes} min: all is sent, nothing is doubled, no circuit opens (I22)`,
  () => proveCalmFor(minutes),
  chaosMs + 400_000,
)

test.skipIf(isCalm)(
  `chaos for ${minutes} min: everything accepted reaches one final state, none is lost (I1, I2)`,
  async () => {
    const lab = openLab(seed, false)
    const refusing = await startFarEnd()
    refusing.behave = () => ({ status: 422 })
    const policyFile = (url: string) => sectionsWithWays(url, refusing.url)
    const fleet = await startFleet({ apis: 2, workers: 2, ...(await redisOfChaos()), policyFile })
    const strikes: string[] = []
    const strikeUntil = async (untilMs: number) => {
      const drawable = faults.filter((fault): fault is Required<Fault> => Boolean(fault.strike))
      while (performance.now() < untilMs) {
        await sleep(lab.between(500, 3_000))
        const { id, strike } = lab.pick(drawable)
        strikes.push(id)
        await strike(fleet, lab)
      }
    }
    const [ledger, begun] = await Promise.all([
      sendAtRate(fleet, perSecond, forSeconds(minutes * 60)),
      beginWaysAtRate(fleet, perSecond / 20, forSeconds(minutes * 60)),
      strikeUntil(performance.now() + chaosMs - 10_000),
    ])
    const report = await settle(fleet, ledger, 180_000)
    print(ledger, strikes, report, await reasonsNotSent(fleet))
    await expectBooksAgree(fleet, ledger, report)
    console.log(`verifications       ${await expectWaysAgree(fleet, begun, 180_000)}`)
    await expectAllWorks(fleet)
  },
  chaosMs + 400_000,
)

/** One plain server, or a cluster of three masters. */
async function redisOfChaos(): Promise<FleetOptions> {
  const redisFlags = hasAof ? [] : ['--appendonly', 'no']
  if (!isCluster) return { redisFlags }
  const { url, nodes } = await ownCluster(undefined, redisFlags)
  return { redisUrl: url, redisMasters: nodes }
}

/** Reasons why notices ended unsent, with their numbers. */
async function reasonsNotSent(fleet: Fleet): Promise<string> {
  const rows = await fleet.query<{ reason: string }>(
    `SELECT format('%s × %s: %s', count(*), state, error) AS reason FROM notice
     WHERE state IN ('failed', 'expired') GROUP BY state, error ORDER BY count(*) DESC`,
  )
  return rows.map(({ reason }) => reason).join('; ')
}

function print(
  ledger: Ledger,
  strikes: readonly string[],
  report: Awaited<ReturnType<typeof settle>>,
  notSent: string,
) {
  const final = Object.values(report.final).reduce((sum, count) => sum + count, 0)
  const rows = [
    ['seed', seed],
    ['redis', isCluster ? 'cluster of three masters' : 'one server'],
    ['append-only file', hasAof ? 'yes' : 'no'],
    ['requests', ledger.entries.length],
    ['accepted', report.accepted],
    ['final', `${final} ${JSON.stringify(report.final)}`],
    ['not sent', notSent],
    ['lost', report.lost],
    ['doubled', `${report.doubled} (${((100 * report.doubled) / report.accepted).toFixed(2)} %)`],
    ['refused', JSON.stringify(report.refused)],
    ['broken connections', report.broken],
    ['faults', `${strikes.length}: ${strikes.join(' ')}`],
  ]
  console.log(rows.map(([name, value]) => `${String(name).padEnd(20)}${value}`).join('\n'))
  expect(strikes.length).toBeGreaterThan(0)
}
