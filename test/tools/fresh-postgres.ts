/**
 * To make a PostgreSQL cluster takes a second of processor, and dozens of tests want one. So a run makes one,
 * never starts it, and copies it for every server.
 */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { makeCluster } from '../../src/dev/private-postgres.ts'

const freshPostgres = (dataFolder: string) => join(dataFolder, 'fresh-postgres')

export async function makeFreshPostgres(dataFolder: string): Promise<void> {
  await makeCluster(freshPostgres(dataFolder))
}

/** Copies nothing in a run that was given its PostgreSQL and made none: the server makes its own then. */
export async function copyFreshPostgres(dataFolder: string, dataDir: string): Promise<void> {
  const fresh = freshPostgres(dataFolder)
  // It belongs to the user that PostgreSQL runs as, and so must the copy.
  if (existsSync(fresh)) await promisify(execFile)('cp', ['-a', `${fresh}/.`, dataDir])
}
