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
  let next: Promise<Readiness> | undefined
  let lookedAtMs = Number.NEGATIVE_INFINITY
  let known: string | undefined
  let phase: 'running' | keyof typeof notRunning = 'starting'
  let isStopped = false

  function ask(): Promise<Readiness> {
    next ??= lookLater()
    return next
  }

  async function lookLater(): Promise<Readiness> {
    await sleep(Math.max(0, lookedAtMs + spacingMs - performance.now()))
    lookedAtMs = performance.now()
    next = undefined
    if (phase !== 'running') return { reasons: [notRunning[phase]], warnings: [] }
    const readiness = await look()
    const found = JSON.stringify(readiness)
    if (found !== known && phase === 'running' && !isStopped) {
      known = found
      onChange(readiness)
    }
    return readiness
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
