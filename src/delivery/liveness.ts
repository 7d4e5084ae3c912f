/**
 * Whether a worker makes progress. After long outages, a queue worker can stay idle for ever although its connection is
 * fine, so a PING proves nothing. A queue is stuck when jobs wait for a minute while its worker has no job. `livez`
 * reports it, so that a supervisor can start a new process. While Redis is away, nothing is reported.
 */
import { type QueueOf, queueName } from '../notice/job.ts'
import type { Producer } from '../notice/producer.ts'

const stuckTimeoutMs = 60_000
const lookSpacingMs = 5_000

export interface Watched extends QueueOf {
  idleDurationMs(): number
}

export function startLiveness(deps: {
  workers: readonly Watched[]
  depths: Producer['depths']
  stuckTimeoutMs?: number
  lookSpacingMs?: number
}) {
  const { workers, depths } = deps
  /** By queue, the time since which every look has found waiting jobs. */
  const waitingAtMs = new Map<string, number>()

  async function look() {
    const counts = await depths().catch(() => [])
    const waiting = new Set(
      counts.filter(({ state, value }) => value > 0 && state === 'waiting').map(queueName),
    )
    for (const queue of workers.map(queueName)) {
      if (!waiting.has(queue)) waitingAtMs.delete(queue)
      else if (!waitingAtMs.has(queue)) waitingAtMs.set(queue, performance.now())
    }
  }

  const timer = setInterval(look, deps.lookSpacingMs ?? lookSpacingMs)
  timer.unref()

  return {
    /** Reasons to replace this process; empty if there are none. */
    reasonsNotLive(): string[] {
      const timeoutMs = deps.stuckTimeoutMs ?? stuckTimeoutMs
      return workers.flatMap(({ idleDurationMs, ...queue }) => {
        const sinceAtMs = waitingAtMs.get(queueName(queue))
        const isStuck =
          sinceAtMs !== undefined &&
          performance.now() - sinceAtMs > timeoutMs &&
          idleDurationMs() > timeoutMs
        return isStuck ? [`${queueName(queue)} jobs are waiting and the worker starts none`] : []
      })
    },
    stop() {
      clearInterval(timer)
    },
  }
}
