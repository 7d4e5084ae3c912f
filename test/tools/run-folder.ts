import { globSync, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { findServer } from '../../src/dev/server-process.ts'

const inMemory = '/dev/shm'

/**
 * Temporary folders of a run, named after the process that owns them. The next run removes the folders of a run that
 * was killed.
 */
export function makeRunFolder(parent = tmpdir()): string {
  return mkdtempSync(join(parent, `postern-test-${process.pid}-`))
}

/**
 * The folder for the data of servers. It is in memory if there is room: every test file clones a database of 300
 * files, and a disk takes several times the processor time for that.
 */
export function makeDataFolder(): string {
  return makeRunFolder(freeBytes(inMemory) >= 4 * 2 ** 30 ? inMemory : tmpdir())
}

export function removeDeadRunFolders(): void {
  for (const parent of [tmpdir(), ...(freeBytes(inMemory) > 0 ? [inMemory] : [])]) {
    for (const name of readdirSync(parent)) {
      const owner = /^postern-test-(\d+)-/.exec(name)?.[1]
      if (owner && !isAlive(Number(owner))) removeRunFolder(join(parent, name))
    }
  }
}

/** 0 for a folder that does not exist. */
function freeBytes(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch {
    return 0
  }
}

/** Ends every server in it and removes it, without waiting, because a process may be exiting. */
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
