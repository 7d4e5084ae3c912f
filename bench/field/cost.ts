/** The cost of a verification: a send, its message, and the right code, without attackers. */
import { readFileSync } from 'node:fs'
import { cpuMs } from '../harness/measure.ts'
import { hourMs } from './day.ts'
import { type Checked, type Sent, type Service, solvedAnswer } from './service.ts'
import { until } from './until.ts'
import type { openDayWorld } from './world.ts'

export interface Cost {
  readonly verifications: number
  /** Milliseconds of processor time for each, by the service's processes, and by Redis and PostgreSQL. */
  readonly ownMs: number
  readonly serversMs: number
  /** The most memory that the service's processes had together, so far. */
  readonly mb: number
}

/** Work under way at a time. */
const people = 4
/** Longer than a message needs on a busy machine. */
const arrivalMs = 60_000

/** To be called after a day: it begins when the limits of that day have ended. */
export async function measureCost(
  service: Service,
  { clock, provider, bench }: Awaited<ReturnType<typeof openDayWorld>>,
  count: number,
): Promise<Cost> {
  clock.setTime(49 * hourMs)
  const own = service.processes.map(({ pid }) => pid)
  const servers = [bench.redis.pid, bench.postgres.pid]
  const used = (pids: readonly number[]) => pids.reduce((sum, pid) => sum + cpuMs(pid), 0)
  const [ownBefore, serversBefore] = [used(own), used(servers)]
  let next = 0
  let verifications = 0
  const verify = async () => {
    while (next < count) {
      const index = next++
      // Far apart, like the numbers of a site's customers.
      const to = `+8618${String(index * 4_900_003).padStart(9, '0')}`
      const ip = `77.${index >> 8}.${index & 255}.1`
      const sent = await solvedAnswer<Sent>(await service.send({ channel: 'sms', to, ip }))
      if (sent.is !== 'accepted') continue
      await until(() => provider.messagesTo(to).length > 0, arrivalMs)
      const [message] = provider.messagesTo(to)
      if (!message) continue
      const typed = { channel: 'sms', to, ip, code: message.code } as const
      const checked = await solvedAnswer<Checked>(await service.check(typed))
      if (checked.is === 'passed') verifications += 1
    }
  }
  await Promise.all(Array.from({ length: people }, verify))
  return {
    verifications,
    ownMs: (used(own) - ownBefore) / verifications,
    serversMs: (used(servers) - serversBefore) / verifications,
    mb: own.reduce((sum, pid) => sum + mostMb(pid), 0),
  }
}

function mostMb(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) / 1_024
}
