/**
 * Faults in real time: the fate of messages while all processes of a service are killed, and while the provider is slow or
 * away. The provider decides the moment of the kill: each message is with it, and it has not answered. So luck decides
 * nothing.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Adapter } from './service.ts'
import { until } from './until.ts'
import { openWorld } from './world.ts'

export interface Fate {
  /** Presses that the service accepted. */
  accepted: number
  /** Accepted, and no message came within `patienceMs`. */
  lost: number
  /** More than one message came. */
  twice: number
}

/** Less than a code's life. A queue may look for stopped jobs twice in this time. */
const patienceMs = 120_000
/** Longer than a few quick retries. */
const awayMs = 10_000

export type Faults = Readonly<Record<'killed' | 'slow' | 'away', Fate>>

/** `presses`: people who press at the time of each fault. */
export async function playFaults(adapter: Adapter, presses: number): Promise<Faults> {
  const world = await openWorld()
  const { provider } = world
  let service = await adapter.start(world)
  try {
    return { killed: await kill(), slow: await beSlow(), away: await beAway() }
  } finally {
    await service.close()
    await world.close()
  }

  async function kill(): Promise<Fate> {
    await provider.behave('holds')
    const { numbers, accepted, all } = press('+8617')
    await until(() => provider.calls() >= presses, patienceMs)
    await Promise.all(service.processes.map((one) => one.kill()))
    await all
    await service.close()
    service = await adapter.start(world)
    await provider.behave('accepts')
    return fateOf(numbers, accepted)
  }

  async function beSlow(): Promise<Fate> {
    await provider.behave('is slow')
    const { numbers, accepted, all } = press('+8618')
    await all
    const fate = await fateOf(numbers, accepted)
    await provider.behave('accepts')
    return fate
  }

  async function beAway(): Promise<Fate> {
    await provider.behave('is away')
    const { numbers, accepted, all } = press('+8615')
    await Promise.all([all, sleep(awayMs)])
    await provider.behave('accepts')
    return fateOf(numbers, accepted)
  }

  /** Some people press at once. `all` resolves when the service has answered each or is dead. */
  function press(prefix: string) {
    const accepted = new Set<string>()
    const numbers = Array.from(
      { length: presses },
      (_, index) => `${prefix}${String(index * 20_900_003).padStart(9, '0')}`,
    )
    const all = Promise.all(
      numbers.map(async (to, index) => {
        const ip = `77.1.${index}.1`
        const sent = await service.send({ channel: 'sms', to, ip }).catch(() => undefined)
        if (sent?.is === 'accepted') accepted.add(to)
      }),
    )
    return { numbers, accepted, all }
  }

  async function fateOf(numbers: readonly string[], accepted: ReadonlySet<string>): Promise<Fate> {
    await until(async () => (await service.isQuiet?.()) ?? true, patienceMs)
    const counts = new Map(numbers.map((to) => [to, provider.messagesTo(to).length]))
    return {
      accepted: accepted.size,
      lost: [...accepted].filter((to) => counts.get(to) === 0).length,
      twice: numbers.filter((to) => (counts.get(to) ?? 0) > 1).length,
    }
  }
}
