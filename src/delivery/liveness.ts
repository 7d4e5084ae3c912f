/**
 * Whether a worker makes progress. After long outages, a queue worker can stay idle for ever although its connection is
 * fine, so a PING proves nothing. A channel is stuck when jobs wait for a minute while its worker has no job. `livez`
 * reports it, so that a supervisor can start a new process. While Redis is away, nothing is reported.
 */
import type { Channel } from '../base/channel.ts'
import type { Producer } from '../notice/producer.ts'

const stuckAfterMs = 60_000
const lookEveryMs = 5_000

export interface Watched {
  channel: Channel
  idleMs(): number
}

export function startLiveness(deps: {
  workers: readonly Watched[]
  depths: Producer['depths']
  stuckAfterMs?: number
  lookEveryMs?: number
}) {
  const { workers, depths } = deps
  /** By channel, the time since which every look has found waiting jobs. */
  const waitingSinceMs = new Map<Channel, number>()

  async function look() {
    const counts = await depths().catch(() => [])
    const waiting = new Set(
      counts
        .filter(({ state, value }) => value > 0 && (state === 'waiting' || state === 'prioritized'))
        .map(({ channel }) => channel),
    )
    for (const { channel } of workers) {
      if (!waiting.has(channel)) waitingSinceMs.delete(channel)
      else if (!waitingSinceMs.has(channel)) waitingSinceMs.set(channel, performance.now())
    }
  }

  const timer = setInterval(look, deps.lookEveryMs ?? lookEveryMs)
  timer.unref()

  return {
    /** Reasons to replace this process; empty if there are none. */
    reasonsNotLive(): string[] {
      const limitMs = deps.stuckAfterMs ?? stuckAfterMs
      return workers.flatMap(({ channel, idleMs }) => {
        const sinceMs = waitingSinceMs.get(channel)
        const isStuck =
          sinceMs !== undefined && performance.now() - sinceMs > limitMs && idleMs() > limitMs
        return isStuck ? [`${channel} jobs are waiting and the worker starts none`] : []
      })
    },
    stop() {
      clearInterval(timer)
    },
  }
}
