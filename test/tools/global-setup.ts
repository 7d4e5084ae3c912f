import { join } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { startPrivatePostgres } from '../../src/dev/private-postgres.ts'
import { startPrivateRedis } from '../../src/dev/private-redis.ts'
import type { PrivateServer } from '../../src/dev/private-server.ts'
import { migrate } from '../../src/storage/migrate.ts'
import { buildBrowserScripts } from '../../web/build.ts'
import { copyFreshPostgres, makeFreshPostgres } from './fresh-postgres.ts'
import {
  makeDataFolder,
  makeRunFolder,
  removeDeadRunFolders,
  removeRunFolder,
} from './run-folder.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** A Redis whose numbered databases `testRedis()` gives to the files. */
    redisUrl: string
    /** A PostgreSQL in which databases may be created. */
    postgresUrl: string
    /** The migrated database that `testDatabase()` clones. */
    templateDatabase: string
    /** Removed after the run. */
    runFolder: string
    /** For the data of all servers of the run. Removed after the run. */
    dataFolder: string
    /** The path at which a host has mounted Postern. Empty for the standalone API. */
    mountAt: string
  }
}

/**
 * One Redis and one PostgreSQL for the run: the servers at `REDIS_URL` and `DATABASE_URL`, or private ones, which are
 * fast and not durable. Runs at the same time share nothing: each has its own ports, folder and names.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  removeDeadRunFolders()
  const [folder, dataFolder] = [makeRunFolder(), makeDataFolder()]
  const removeFolders = () => {
    removeRunFolder(dataFolder)
    removeRunFolder(folder)
  }
  // The API serves the files that web/ has now.
  await buildBrowserScripts()
  const redisIsGiven = Boolean(process.env.REDIS_URL)
  const postgresIsGiven = Boolean(process.env.DATABASE_URL)
  const [redis, postgres] = await Promise.all([
    redisIsGiven ? undefined : startTestRedis(dataFolder),
    postgresIsGiven ? undefined : startTestPostgres(dataFolder),
  ])
  const redisUrl = redis?.url ?? (process.env.REDIS_URL as string)
  const postgresUrl = postgres?.url ?? (process.env.DATABASE_URL as string)

  // A run that a signal stops gets no teardown.
  process.once('exit', removeFolders)

  const templateDatabase = `postern_template_${process.pid}_${Date.now().toString(36)}`
  await runSql(postgresUrl, `CREATE DATABASE ${templateDatabase}`)
  await migrate(withDatabase(postgresUrl, templateDatabase))

  project.provide('redisUrl', redisUrl)
  project.provide('postgresUrl', postgresUrl)
  project.provide('templateDatabase', templateDatabase)
  project.provide('runFolder', folder)
  project.provide('dataFolder', dataFolder)

  return async () => {
    process.off('exit', removeFolders)
    try {
      if (postgresIsGiven) {
        await runSql(postgresUrl, `DROP DATABASE IF EXISTS ${templateDatabase} WITH (FORCE)`)
      }
    } finally {
      await Promise.all([redis?.kill(), postgres?.kill()])
      removeFolders()
    }
  }
}

export function startTestRedis(folder: string): Promise<PrivateServer> {
  const flags = ['--appendonly', 'no', '--databases', '1024']
  return startPrivateRedis({ dataDir: join(folder, 'redis'), flags })
}

export async function startTestPostgres(folder: string): Promise<PrivateServer> {
  const dataDir = join(folder, 'postgres')
  await makeFreshPostgres(folder)
  await copyFreshPostgres(folder, dataDir)
  const settings = ['fsync=off', 'full_page_writes=off', 'max_connections=400']
  const flags = settings.flatMap((setting) => ['-c', setting])
  return startPrivatePostgres({ dataDir, flags })
}

async function runSql(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}

function withDatabase(url: string, database: string): string {
  const target = new URL(url)
  target.pathname = `/${database}`
  return target.href
}
