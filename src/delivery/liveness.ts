/**
 * Whether a worker makes progress. After long outages, a queue worker can stay idle for ever although its connection is
 * fine, so a PING proves nothing. A channel is stuck when jobs wait for a minute while its worker has no job. `livez`
 * reports it, so that a supervisor can start a new process. While Redis is away, nothing is reported.
 */
import type { Channel } from '../base/channel.ts'
import type { Producer } from '../notice/producer.ts'

const stuckTimeoutMs = 60_000
const lookSpacingMs = 5_000

export interface Watched {
  channel: Channel
  idleDurationMs(): number
}

export function startLiveness(deps: {
  workers: readonly Watched[]
  depths: Producer['depths']
  stuckTimeoutMs?: number
  lookSpacingMs?: number
}) {
  const { workers, depths } = deps
  /** By channel, the time since which every look has found waiting jobs. */
  const waitingAtMs = new Map<Channel, number>()

  async function look() {
    const counts = await depths().catch(() => [])
    const waiting = new Set(
      counts
        .filter(({ state, value }) => value > 0 && (state === 'waiting' || state === 'prioritized'))
        .map(({ channel }) => channel),
    )
    for (const { channel } of workers) {
      if (!waiting.has(channel)) waitingAtMs.delete(channel)
      else if (!waitingAtMs.has(channel)) waitingAtMs.set(channel, performance.now())
    }
  }

  const timer = setInterval(look, deps.lookSpacingMs ?? lookSpacingMs)
  timer.unref()

  return {
    /** Reasons to replace this process; empty if there are none. */
    reasonsNotLive(): string[] {
      const timeoutMs = deps.stuckTimeoutMs ?? stuckTimeoutMs
      return workers.flatMap(({ channel, idleDurationMs }) => {
        const sinceAtMs = waitingAtMs.get(channel)
        const isStuck =
          sinceAtMs !== undefined &&
          performance.now() - sinceAtMs > timeoutMs &&
          idleDurationMs() > timeoutMs
        return isStuck ? [`${channel} jobs are waiting and the worker starts none`] : []
      })
    },
    stop() {
      clearInterval(timer)
    },
  }
}
