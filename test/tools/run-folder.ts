import { globSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { findServer } from '../../src/dev/server-process.ts'

/**
 * One temporary folder per run, named after the process that owns it and holding the data of all its
 * servers. A run that was killed could not clean up, so the next one does it.
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
  for (const entry of globSync('**/{redis.pid,postmaster.pid,prometheus.pid,server.pid}', {
    cwd: folder,
  })) {
    const pidFile = join(folder, entry)
    const dataDir = dirname(pidFile)
    const mark = entry.endsWith('redis.pid') ? join(dataDir, 'redis.conf') : dataDir
    const pid = findServer(pidFile, mark)
    try {
      if (pid) process.kill(pid, 'SIGKILL')
    } catch {
      // Another run was quicker.
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
