/** The clock of a simulated day, for Redis, PostgreSQL and every process of a service. See clock.c. */
import { execFileSync } from 'node:child_process'
import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { findOnPath } from '../../src/dev/find-or-install.ts'

/** Each day begins here. Rules by calendar depend on it. */
const firstMs = Date.parse('2027-03-01T00:00:00Z')

export interface DayClock {
  /** For the processes that live by this clock. */
  readonly env: Readonly<Record<string, string>>
  /** Milliseconds since the day began. */
  setTime(atMs: number): void
  close(): void
}

export const canMoveClocks = () =>
  process.platform === 'linux' && findOnPath('cc', 'gcc', 'clang') !== undefined

export function createDayClock(folder: string): DayClock {
  const compiler = findOnPath('cc', 'gcc', 'clang')
  if (process.platform !== 'linux' || !compiler)
    throw new Error('a simulated day needs Linux and a C compiler (Debian: apt-get install gcc)')
  const library = join(folder, 'clock.so')
  const source = join(import.meta.dirname, 'clock.c')
  execFileSync(compiler, ['-O2', '-shared', '-fPIC', '-o', library, source])
  const path = join(folder, 'now')
  const file = openSync(path, 'w', 0o644)
  const bytes = Buffer.alloc(8)
  const setTime = (atMs: number) => {
    bytes.writeBigInt64LE(BigInt(firstMs + atMs) * 1_000n)
    writeSync(file, bytes, 0, 8, 0)
  }
  setTime(0)
  const script = pathToFileURL(join(import.meta.dirname, 'js-clock.mjs')).href
  return {
    env: { LD_PRELOAD: library, FIELD_CLOCK: path, NODE_OPTIONS: `--import=${script}` },
    setTime,
    close: () => closeSync(file),
  }
}
