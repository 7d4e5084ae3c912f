import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stopLeftover } from '../../src/main/server-process.ts'

/**
 * One temporary folder per run, named after the process that owns it. A run that was killed could not
 * clean up, so the next one ends the servers in folders whose owner is gone and removes them.
 */
const folderName = /^postern-test-(\d+)-/

export function makeRunFolder(): string {
  return mkdtempSync(join(tmpdir(), `postern-test-${process.pid}-`))
}

export async function removeDeadRunFolders(): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    const owner = folderName.exec(name)?.[1]
    if (!owner || isAlive(Number(owner))) continue
    const folder = join(tmpdir(), name)
    for (const entry of readdirSync(folder)) {
      const dataDir = join(folder, entry)
      const config = join(dataDir, 'redis.conf')
      const cluster = join(dataDir, 'cluster')
      await stopLeftover(join(dataDir, 'redis.pid'), config, 'SIGKILL')
      await stopLeftover(join(cluster, 'postmaster.pid'), cluster, 'SIGQUIT')
    }
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
