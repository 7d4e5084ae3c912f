/**
 * `npm run bench -- field [people] [name] [parts]`: services for codes, measured by the same day. docs/benchmark.md has
 * its table, and how to add a service.
 *
 * **A service** is an adapter (field/service.ts, at most about 150 lines): it starts real processes over an empty Redis and
 * PostgreSQL, and translates a press and a typed code into the service's calls. The service posts its messages to a
 * provider in this process.
 *
 * **A day** (field/day.ts) is drawn from a seed before it is played: honest people of twenty countries, and five attacks.
 * It is played one request at a time (field/play.ts). All clocks stand still while the service works, and then move to
 * the next request: a library that is preloaded into Redis, PostgreSQL and every process answers with the day's time
 * (field/clock.ts). So no decision depends on the machine's speed, and the same seed gives the same table, except times.
 *
 * **A cost** (field/cost.ts) follows on the next day, without attackers. **Faults** (field/faults.ts) need real clocks, so
 * they are played over other servers, of all services at once. The provider decides when a process is killed.
 *
 * `name`: only services whose name contains it. `parts`: `cost`, `faults` or both besides the day, or `day` alone.
 */
import { availableParallelism, cpus } from 'node:os'
import { betterAuth } from './field/adapters/better-auth.ts'
import { embeddedWith } from './field/adapters/embedded.ts'
import { handWritten } from './field/adapters/hand-written.ts'
import { posternWith } from './field/adapters/postern.ts'
import { type Cost, measureCost } from './field/cost.ts'
import { drawDay } from './field/day.ts'
import { type Faults, playFaults } from './field/faults.ts'
import { type Played, play } from './field/play.ts'
import type { Adapter } from './field/service.ts'
import { openDayWorld } from './field/world.ts'
import { median, percentile } from './harness/measure.ts'
import { openTable } from './harness/table.ts'

const seed = 20_261_127
/** Verifications whose cost is measured, and presses at the time of a fault. */
const [verifications, presses] = [200, 10]
/** The price of an SMS in every country. */
const smsPrice = 0.06

const people = Number(process.argv[2] ?? 100)
const wanted = process.argv[3] ?? ''
const parts = (process.argv[4] ?? 'day,cost,faults').split(',')

/** The policies of Postern differ in decisions alone, so faults are played with one of them. */
const withFaults = [posternWith('starter'), embeddedWith('starter'), handWritten, betterAuth]
const adapters = [
  ...['starter', 'strict', 'global', 'china'].map(posternWith),
  ...[embeddedWith('starter'), handWritten, betterAuth],
].filter(({ name }) => name.includes(wanted))

interface Measured {
  readonly name: string
  readonly played: Played
  readonly cost: Cost | undefined
  faults?: Faults
}

// Every server and process of the bench ends with this process.
process.setMaxListeners(200)
const day = drawDay(people, seed)
const measured: Measured[] = []
for (const adapter of adapters) {
  console.error(`${new Date().toISOString()} ${adapter.name}`)
  measured.push(await playDay(adapter))
}
if (parts.includes('faults')) {
  // Most of their time is spent waiting, and no figure of theirs is a time.
  const names = withFaults.map(({ name }) => name)
  const played = adapters.map(async (adapter, index) => {
    const one = measured[index]
    if (one && names.includes(adapter.name)) one.faults = await playFaults(adapter, presses)
  })
  await Promise.all(played)
}
printTable(measured)

async function playDay(adapter: Adapter): Promise<Measured> {
  const world = await openDayWorld()
  const { provider, clock } = world
  const service = await adapter.start(world)
  try {
    const { setTime } = clock
    const played = await play(day, { service, provider, setTime, countries: adapter.countries })
    const hasCost = parts.includes('cost')
    const cost = hasCost ? await measureCost(service, world, verifications) : undefined
    return { name: adapter.name, played, cost }
  } finally {
    await service.close()
    await world.close()
  }
}

function printTable(all: readonly Measured[]): void {
  const { pumping, typing, bombing, guessing, guessingMany } = day
  const row = openTable(`${people} people`, ...all.map(({ name }) => name))
  const rowOf = (name: string, cell: (one: Measured) => string | number) =>
    row(name, ...all.map(cell))
  const percent = (count: number, of: number) => `${((100 * count) / of).toFixed(1)} %`
  const fate = (name: keyof Faults) => (one: Measured) => {
    const { accepted, lost, twice } = one.faults?.[name] ?? {}
    return accepted === undefined ? '–' : `${accepted}, ${lost}, ${twice}`
  }

  rowOf('people who typed a right code in time', ({ played: { people } }) =>
    percent(people.passed, people.wanted),
  )
  rowOf('people refused', ({ played: { people } }) => percent(people.refused, people.wanted))
  rowOf('challenges for people', ({ played: { people } }) =>
    percent(people.challenged, people.wanted),
  )
  rowOf(
    `sign-ins of attacked owners, of ${day.owners.length}`,
    ({ played: { owners } }) => owners.passed,
  )
  const messages = (kind: keyof Played['attacks'], requests: number, name: string) =>
    rowOf(`messages to ${name}, of ${requests}`, ({ played }) => played.attacks[kind].messages)
  messages('pumping', pumping.length, 'rented numbers')
  messages('typing', typing.length, 'rented numbers that type')
  messages('bombing', bombing.length, 'a bombed number')
  messages('guessing', guessing.length, 'a guessed number')
  messages('guessingMany', guessingMany.length, 'many guessed numbers')
  rowOf('price of these messages', ({ played }) => {
    const counts = Object.values(played.attacks).map(({ messages }) => messages)
    return (counts.reduce((sum, count) => sum + count, 0) * smsPrice).toFixed(2)
  })
  rowOf('guesses compared with a code', compared)
  rowOf('codes guessed, expected', (one) =>
    (compared(one) / 10 ** one.played.codeLength).toFixed(5),
  )
  rowOf('accepted messages that did not come', ({ played }) => played.lost)
  rowOf(`killed, ${presses} at the provider: accepted, lost, twice`, fate('killed'))
  rowOf(`provider slow, ${presses} presses: the same`, fate('slow'))
  rowOf(`provider away 10 s, ${presses} presses: the same`, fate('away'))
  rowOf('ms from press to provider, p50, p99', ({ played: { latencies } }) => {
    const p99 = percentile(
      latencies.toSorted((a, b) => a - b),
      0.99,
    )
    return `${median(latencies).toFixed(0)}, ${p99.toFixed(0)}`
  })
  rowOf('processor ms per verification', ({ cost }) => cost?.ownMs.toFixed(1) ?? '–')
  rowOf('the same, of Redis and PostgreSQL', ({ cost }) => cost?.serversMs.toFixed(1) ?? '–')
  rowOf('MB of its processes, at most', ({ cost }) => cost?.mb.toFixed(0) ?? '–')
  console.log(`\nOn ${availableParallelism()} cores of ${cpus()[0]?.model ?? 'unknown'}.`)
}

function compared({ played: { attacks } }: Measured): number {
  return attacks.guessing.compared + attacks.guessingMany.compared
}
