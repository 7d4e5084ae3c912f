/**
 * Making a PostgreSQL cluster takes a second of processor time, and dozens of tests need one. So a run makes one,
 * never starts it, and copies it for every server.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { makeCluster } from '../../src/dev/private-postgres.ts'

const freshPostgres = (dataFolder: string) => join(dataFolder, 'fresh-postgres')

export async function makeFreshPostgres(dataFolder: string, programs?: string): Promise<void> {
  await makeCluster(freshPostgres(dataFolder), programs)
}

/** Copies nothing if the run got its PostgreSQL from outside. Then the server makes its own cluster. */
export async function copyFreshPostgres(dataFolder: string, dataDir: string): Promise<void> {
  const fresh = freshPostgres(dataFolder)
  // It belongs to PostgreSQL's user, and so must the copy.
  if (existsSync(fresh)) await promisify(execFile)('cp', ['-a', `${fresh}/.`, dataDir])
}
