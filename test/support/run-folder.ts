import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findServer } from '../../src/main/server-process.ts'

/**
 * One temporary folder per run, named after the process that owns it, with a folder in it for each
 * server. A run that was killed could not clean up, so the next one does it.
 */
export function makeRunFolder(): string {
  return mkdtempSync(join(tmpdir(), `postern-test-${process.pid}-`))
}

export function removeDeadRunFolders(): void {
  for (const name of readdirSync(tmpdir())) {
    const owner = /^postern-test-(\d+)-/.exec(name)?.[1]
    if (owner && !isAlive(Number(owner))) removeRunFolder(join(tmpdir(), name))
  }
}

/** Ends every server in it and removes it, without waiting for anything: a process may be exiting. */
export function removeRunFolder(folder: string): void {
  if (!existsSync(folder)) return
  for (const entry of readdirSync(folder)) {
    const dataDir = join(folder, entry)
    const cluster = join(dataDir, 'cluster')
    for (const pid of [
      findServer(join(dataDir, 'redis.pid'), join(dataDir, 'redis.conf')),
      findServer(join(cluster, 'postmaster.pid'), cluster),
    ]) {
      if (pid) process.kill(pid, 'SIGKILL')
    }
  }
  // The children of a killed PostgreSQL still write for a moment.
  rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
