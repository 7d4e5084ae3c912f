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
 * `npm run bench -- attack` plays days with one attack each, in the same way.
 *
 * **A cost** (field/cost.ts) follows on the next day, without attackers. **Faults** (field/faults.ts) need real clocks, so
 * they are played over other servers, of several services at once. **Silence** (field/silent.ts) is a provider that accepts
 * and delivers nothing.
 *
 * `name`: a pattern; only services whose name matches it. `parts`: some of `day,cost,faults,silence`.
 */
import { availableParallelism, cpus } from 'node:os'
import { betterAuth } from './field/adapters/better-auth.ts'
import { embeddedWith } from './field/adapters/embedded.ts'
import { flexible } from './field/adapters/flexible.ts'
import { handWritten } from './field/adapters/hand-written.ts'
import { posternWith } from './field/adapters/postern.ts'
import { type Cost, measureCost } from './field/cost.ts'
import { drawDay } from './field/day.ts'
import { type Faults, faults, playFaults } from './field/faults.ts'
import { type Played, play } from './field/play.ts'
import type { Adapter } from './field/service.ts'
import { timeUntilNoticed } from './field/silent.ts'
import { openDayWorld } from './field/world.ts'
import { median, percentile } from './harness/measure.ts'
import { openTable } from './harness/table.ts'

const seed = 20_261_127
/** Verifications whose cost is measured, and presses at the time of a fault. */
const [verifications, presses] = [200, 10]
/** The price of an SMS in every country. */
const smsPrice = 0.06

const people = Number(process.argv[2] ?? 100)
const wanted = new RegExp(process.argv[3] ?? '')
const parts = (process.argv[4] ?? 'day,cost,faults,silence').split(',')

const adapters = [
  ...['starter', 'strict', 'global', 'china'].map((name) => posternWith(name)),
  ...[embeddedWith('starter'), handWritten, flexible, betterAuth],
].filter(({ name }) => wanted.test(name))

interface Measured {
  readonly name: string
  readonly played?: Played | undefined
  readonly cost?: Cost | undefined
  readonly faults?: Faults | undefined
  readonly noticed?: string | undefined
}

// Every server and process of the bench ends with this process.
process.setMaxListeners(400)
const [days, fates, silences] = [
  await each('day', 1, playDay),
  // Most of their time is spent waiting, and no figure of theirs is a time.
  await each('faults', 8, async (adapter) => ({ faults: await playFaults(adapter, presses) })),
  await each('silence', 4, async (adapter) => ({ noticed: await timeUntilNoticed(adapter) })),
]
printTable(
  adapters.map(({ name }, index) => ({
    name,
    ...days[index],
    ...fates[index],
    ...silences[index],
  })),
)

/** One part of all services, some at once. */
async function each(
  part: string,
  atOnce: number,
  measure: (adapter: Adapter) => Promise<Omit<Measured, 'name'>>,
): Promise<Omit<Measured, 'name'>[]> {
  if (!parts.includes(part)) return []
  const measured: Omit<Measured, 'name'>[] = []
  let next = 0
  const work = async () => {
    for (let index = next++; index < adapters.length; index = next++) {
      const adapter = adapters[index] as Adapter
      console.error(`${new Date().toISOString()} ${part}: ${adapter.name}`)
      try {
        measured[index] = await measure(adapter)
      } catch (error) {
        // The others are measured all the same.
        process.exitCode = 1
        console.error(`${part}: ${adapter.name} failed:`, error)
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  return measured
}

async function playDay(adapter: Adapter): Promise<Omit<Measured, 'name'>> {
  const world = await openDayWorld()
  const { provider, clock } = world
  const service = await adapter.start(world)
  try {
    const day = drawDay(people, seed, adapter.countries)
    const played = await play(day, { service, provider, setTime: clock.setTime })
    const hasCost = parts.includes('cost')
    const cost = hasCost ? await measureCost(service, world, verifications) : undefined
    return { played, cost }
  } finally {
    await service.close()
    await world.close()
  }
}

function printTable(all: readonly Measured[]): void {
  const day = drawDay(people, seed)
  const row = openTable(`${people} people`, ...all.map(({ name }) => name))
  const rowOf = (name: string, cell: (one: Measured) => string | number | undefined) => {
    const cells = all.map(cell)
    if (cells.some((one) => one !== undefined)) row(name, ...cells.map((one) => one ?? '–'))
  }
  const rowOfDay = (name: string, cell: (played: Played) => string | number) =>
    rowOf(name, ({ played }) => played && cell(played))
  const rowOfPeople = (name: string, count: 'passed' | 'refused' | 'challenged') =>
    rowOfDay(name, ({ people: { people } }) =>
      people ? `${((100 * people[count]) / people.wanted).toFixed(1)} %` : '–',
    )
  const sum = (counts: readonly number[]) => counts.reduce((total, count) => total + count, 0)
  const compared = ({ attackers }: Played) =>
    sum(Object.values(attackers).map(({ compared }) => compared))

  rowOfPeople('people who typed a right code in time', 'passed')
  rowOfPeople('people refused', 'refused')
  rowOfPeople('challenges for people', 'challenged')
  rowOfDay(
    `sign-ins of attacked owners, of ${day.people.owners?.length}`,
    ({ people: { owners } }) => owners?.passed ?? 0,
  )
  for (const [name, { requests }] of Object.entries(day.attackers))
    rowOfDay(
      `messages to ${name}, of ${requests.length}`,
      ({ attackers }) => attackers[name]?.messages ?? 0,
    )
  rowOfDay('price of these messages', ({ attackers }) =>
    (sum(Object.values(attackers).map(({ messages }) => messages)) * smsPrice).toFixed(2),
  )
  rowOfDay('guesses compared with a code', compared)
  rowOfDay('codes guessed, expected', (played) =>
    (compared(played) / 10 ** played.codeLength).toFixed(5),
  )
  rowOfDay('accepted messages that did not come', ({ lost }) => lost)
  for (const name of faults)
    rowOf(`${name}: accepted, lost, twice`, ({ faults }) => {
      const { accepted, lost, twice } = faults?.[name] ?? {}
      return accepted === undefined ? undefined : `${accepted}, ${lost}, ${twice}`
    })
  rowOf('provider silent: noticed by', ({ noticed }) => noticed)
  rowOfDay('ms from press to provider, p50, p99', ({ latencies }) => {
    const p99 = percentile(
      latencies.toSorted((a, b) => a - b),
      0.99,
    )
    return `${median(latencies).toFixed(0)}, ${p99.toFixed(0)}`
  })
  rowOf('processor ms per verification', ({ cost }) => cost?.ownMs.toFixed(1))
  rowOf('the same, of Redis and PostgreSQL', ({ cost }) => cost?.serversMs.toFixed(1))
  rowOf('MB of its processes, at most', ({ cost }) => cost?.mb.toFixed(0))
  console.log(`\nOn ${availableParallelism()} cores of ${cpus()[0]?.model ?? 'unknown'}.`)
}
