/**
 * Mutants in processes that a test starts. Each process gets the active mutant by its environment, or writes the
 * mutants that it reaches to a file.
 */
import { ChildProcess } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { activeMutant, reached } from './stryker-state.ts'

const file = join(tmpdir(), `postern-mutants-${process.pid}`)
const writer = new URL('./write-reached.ts', import.meta.url)

/** `spawn` and `execFile` both end here. */
const prototype = ChildProcess.prototype as unknown as {
  spawn(options: { file: string; envPairs: string[] }): unknown
}
const { spawn } = prototype
if (spawn.name !== 'spawnWithMutants') {
  prototype.spawn = function spawnWithMutants(options) {
    if (options.file === process.execPath) options.envPairs.push(...environment())
    return spawn.call(this, options)
  }
}

function environment(): string[] {
  const mutant = activeMutant()
  if (mutant !== undefined) return [`__STRYKER_ACTIVE_MUTANT__=${mutant}`]
  return [`NODE_OPTIONS=--import=${writer}`, `MUTANTS_REACHED=${file}`]
}

/** Called after each test. */
export function noteReachedInProcesses(): void {
  if (!existsSync(file)) return
  reached(readFileSync(file, 'utf8').split('\n').filter(Boolean))
  rmSync(file)
}
