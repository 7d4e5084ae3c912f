/**
 * Reports if this process can do its work. Probes and metrics use it, and the process logs every change.
 *
 * A look tests Redis and PostgreSQL with statements, so a flood of probes must not cause a flood of looks. Also, an
 * answer must be newer than its question. Otherwise a probe would report an old state. So looks are spaced, and a
 * question in between waits for the next look.
 */
import { setTimeout as sleep } from 'node:timers/promises'

export interface Readiness {
  /** Why this process can't do its work now; empty if it can. */
  readonly reasons: readonly string[]
  /** Facts that an operator should know although the process works. */
  readonly warnings: readonly string[]
  /** True if the process can check codes, which needs Redis alone. */
  readonly canCheck: boolean
}

const spacingMs = 250
const ownLookEveryMs = 5_000

/** The reasons of a process that is not running. */
const notRunning = { starting: 'still starting', stopping: 'stopping' }

/** The process is starting until `begin`. Its state can be requested at any time. */
export function startReadiness(deps: {
  /** Never throws. */
  look: () => Promise<Readiness>
  /** Called with the first answer of a running process, and with every answer that differs from the last. */
  onChange: (readiness: Readiness) => void
}) {
  const { look, onChange } = deps
  let next: ReturnType<typeof lookLater> | undefined
  let lookedAtMs = Number.NEGATIVE_INFINITY
  let known: string | undefined
  let phase: 'running' | keyof typeof notRunning = 'starting'
  let isStopped = false
  let wasReady = false

  function ask(): Promise<Readiness & { isUseful: boolean }> {
    next ??= lookLater()
    return next
  }

  async function lookLater() {
    await sleep(Math.max(0, lookedAtMs + spacingMs - performance.now()))
    lookedAtMs = performance.now()
    next = undefined
    if (phase !== 'running') {
      return { reasons: [notRunning[phase]], warnings: [], canCheck: false, isUseful: false }
    }
    const readiness = await look()
    wasReady ||= readiness.reasons.length === 0
    const found = JSON.stringify(readiness)
    if (found !== known && phase === 'running' && !isStopped) {
      known = found
      onChange(readiness)
    }
    // A process that was never ready may be of a new version without its migration. It must not replace older ones.
    return { ...readiness, isUseful: wasReady && readiness.canCheck }
  }

  const timer = setInterval(ask, ownLookEveryMs)
  timer.unref()

  return {
    /** The state, measured after the call. */
    ask,
    /** Ends the start. Resolves with the first answer. */
    begin() {
      phase = 'running'
      return ask()
    },
    /** The process accepts no new work from now on. */
    beginStop() {
      phase = 'stopping'
    },
    stop() {
      isStopped = true
      clearInterval(timer)
    },
  }
}
