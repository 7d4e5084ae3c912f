/**
 * Whether this process can do its work: asked by probes and metrics, and by the process itself, which
 * logs every change.
 *
 * A look tries things on Redis and PostgreSQL, so a flood of probes must not become a flood of looks.
 * And an answer must not be older than its question, or a probe would hear of a fault that is mended, or
 * not of one that is new. So looks are spaced, and a question in between waits for the next one.
 */
import { setTimeout as sleep } from 'node:timers/promises'

export interface Readiness {
  /** Why this process can't do its work now; empty when it can. */
  readonly reasons: readonly string[]
  /** What an operator should know although it can. */
  readonly warnings: readonly string[]
}

const spacingMs = 250
const ownLookEveryMs = 5_000

export function startReadiness(deps: {
  /** Never throws. */
  look: () => Promise<Readiness>
  /** Called with the first answer, and with every one that differs from the one before. */
  onChange: (readiness: Readiness) => void
}) {
  const { look, onChange } = deps
  let next: Promise<Readiness> | undefined
  let lookedAtMs = Number.NEGATIVE_INFINITY
  let known: string | undefined
  let isStopped = false

  function ask(): Promise<Readiness> {
    next ??= lookLater()
    return next
  }

  async function lookLater(): Promise<Readiness> {
    await sleep(Math.max(0, lookedAtMs + spacingMs - performance.now()))
    lookedAtMs = performance.now()
    next = undefined
    const readiness = await look()
    const found = JSON.stringify(readiness)
    if (found !== known && !isStopped) {
      known = found
      onChange(readiness)
    }
    return readiness
  }

  const timer = setInterval(ask, ownLookEveryMs)
  timer.unref()

  return {
    /** As it is after the question. */
    ask,
    stop() {
      isStopped = true
      clearInterval(timer)
    },
  }
}
