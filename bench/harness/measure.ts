/** Shared figures of the benches. */
import { readdirSync, readFileSync } from 'node:fs'

/**
 * Processor time of a process and its children, including children that have ended (PostgreSQL has a process for each
 * connection). Unlike a rate, it is the same on a busy machine. 0 without /proc.
 */
export function cpuMs(pid: number): number {
  const ticksPerSecond = 100
  let ticks = 0
  for (const one of processes()) {
    const fields = statOf(one)
    const isOurs = one === pid || Number(fields[1]) === pid
    // User and system time. For this process, also the time of its ended children.
    const used = fields.slice(11, one === pid ? 15 : 13)
    if (isOurs) ticks += used.map(Number).reduce((sum, count) => sum + count, 0)
  }
  return (ticks * 1_000) / ticksPerSecond
}

function processes(): number[] {
  try {
    return readdirSync('/proc').map(Number).filter(Boolean)
  } catch {
    return []
  }
}

/** The fields after the name of the process; undefined if it has ended. */
function statOf(pid: number): string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}

/** The same clock in all processes of a machine. */
export const monotonicMs = () => Number(process.hrtime.bigint()) / 1e6

export function median(values: readonly number[]): number {
  return percentile(
    values.toSorted((a, b) => a - b),
    0.5,
  )
}

/** `sorted`: in ascending order. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.floor(sorted.length * share)] ?? Number.NaN
}
