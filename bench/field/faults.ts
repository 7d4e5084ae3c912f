/**
 * Faults in real time: the fate of messages while processes or servers are killed, while the provider is slow or away, and
 * while a report reads PostgreSQL. The provider decides the moment of a kill: each message is with it, and it has not
 * answered. So luck decides nothing.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { startPrivatePostgres } from '../../src/dev/private-postgres.ts'
import { startPrivateRedis } from '../../src/dev/private-redis.ts'
import { farApart } from './day.ts'
import { type Adapter, type Sent, solvedAnswer } from './service.ts'
import { until } from './until.ts'
import { openWorld } from './world.ts'

export interface Fate {
  /** Presses that the service accepted. */
  readonly accepted: number
  /** Accepted, and no message came within `patienceMs`. */
  readonly lost: number
  /** More than one message came. */
  readonly twice: number
}

/** Less than a code's life. A queue may look for stopped jobs twice in this time. */
const patienceMs = 120_000
/** Less than the time limit of a service's call. */
const answerMs = 3_000
/** Longer than a few quick retries, also on a busy machine. */
const [awayMs, serverAwayMs] = [60_000, 20_000]

export const faults = [
  'all processes killed',
  'Redis killed for 20 s',
  'PostgreSQL killed for 20 s',
  'a report in PostgreSQL',
  'provider slow',
  'provider away a minute',
] as const
export type Faults = Readonly<Record<(typeof faults)[number], Fate>>

/** `presses`: people who press at the time of each fault. */
export async function playFaults(adapter: Adapter, presses: number): Promise<Faults> {
  const world = await openWorld()
  const { provider, bench } = world
  let service = await adapter.start(world)
  let series = 0
  try {
    return {
      'all processes killed': await killProcesses(),
      'Redis killed for 20 s': await killServer('redis', startPrivateRedis),
      'PostgreSQL killed for 20 s': await killServer('postgres', startPrivatePostgres),
      'a report in PostgreSQL': await report(),
      'provider slow': await beSlow(),
      'provider away a minute': await beAway(),
    }
  } finally {
    await service.close()
    await world.close()
  }

  async function killProcesses(): Promise<Fate> {
    const pressed = await pressAndHold()
    await Promise.all(service.processes.map((one) => one.kill()))
    await pressed.all
    await service.close()
    service = await adapter.start(world)
    await provider.behave('accepts')
    return fateOf(pressed)
  }

  /** The provider answers while the server is away, and as many people press. */
  async function killServer(
    name: 'redis' | 'postgres',
    start: typeof startPrivateRedis,
  ): Promise<Fate> {
    const before = await pressAndHold()
    const { port } = bench[name]
    await bench[name].kill()
    await provider.behave('accepts')
    const meanwhile = press()
    await sleep(serverAwayMs)
    const again = await start({ dataDir: join(bench.folder, name), port })
    bench.closeLater(() => again.stop())
    return fateOf(before, meanwhile)
  }

  /** It reads one snapshot, so PostgreSQL keeps all dead rows for it. Ten times as many people press, ten at a time. */
  async function report(): Promise<Fate> {
    const client = new pg.Client({ connectionString: world.postgres.url })
    await client.connect()
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class')
    const pressed = []
    for (let turn = 0; turn < 10; turn++) {
      const some = press()
      await some.all
      pressed.push(some)
    }
    const fate = await fateOf(...pressed)
    await client.end()
    return fate
  }

  async function beSlow(): Promise<Fate> {
    await provider.behave('is slow')
    const fate = await fateOf(press())
    await provider.behave('accepts')
    return fate
  }

  async function beAway(): Promise<Fate> {
    await provider.behave('is away')
    const pressed = press()
    await pressed.all
    await sleep(awayMs)
    await provider.behave('accepts')
    return fateOf(pressed)
  }

  async function pressAndHold() {
    await provider.behave('holds')
    const calls = provider.calls()
    const pressed = press()
    await until(() => provider.calls() >= calls + presses, patienceMs)
    // A service that sends within the request answers none of them now.
    await Promise.race([pressed.all, sleep(answerMs)])
    return pressed
  }

  /** Some people press at once. `all` resolves when the service has answered each or is dead. */
  function press() {
    const accepted = new Set<string>()
    const from = ++series
    const numbers = Array.from({ length: presses }, (_, index) =>
      farApart((from * presses + index) * 17),
    )
    const all = Promise.all(
      numbers.map(async (to, index) => {
        const press = { channel: 'sms', to, ip: `77.${from}.${index}.1` } as const
        const sent = await service.send(press).then(solvedAnswer<Sent>, () => undefined)
        if (sent?.is === 'accepted') accepted.add(to)
      }),
    )
    return { numbers, accepted, all }
  }

  async function fateOf(...pressed: readonly ReturnType<typeof press>[]): Promise<Fate> {
    await Promise.all(pressed.map(({ all }) => all))
    const isQuiet = async () => (await service.isQuiet?.().catch(() => false)) ?? true
    await until(isQuiet, patienceMs)
    const accepted = pressed.flatMap((one) => [...one.accepted])
    const messages = (to: string) => provider.messagesTo(to).length
    return {
      accepted: accepted.length,
      lost: accepted.filter((to) => messages(to) === 0).length,
      twice: pressed.flatMap(({ numbers }) => numbers).filter((to) => messages(to) > 1).length,
    }
  }
}
