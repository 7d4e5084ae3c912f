import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { migrate } from '../../src/storage/migrate.ts'
import { buildBrowserScripts } from '../../web/build.ts'
import { findWorld } from '../worlds/worlds.ts'
import {
  makeDataFolder,
  makeRunFolder,
  removeDeadRunFolders,
  removeRunFolder,
} from './run-folder.ts'
import { makeWorldDatabase, startWorldPostgres, startWorldRedis } from './world.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** A Redis whose numbered databases `testRedis()` gives to the files. */
    redisUrl: string
    /** A PostgreSQL in which databases may be created. */
    postgresUrl: string
    /** The same, as the owner of the server, who may make roles. */
    ownerUrl: string
    /** The migrated database that `testDatabase()` clones. */
    templateDatabase: string
    /** Removed after the run. */
    runFolder: string
    /** For the data of all servers of the run. Removed after the run. */
    dataFolder: string
    /** The name of the run's world (`test/worlds/worlds.ts`). */
    world: string
    /** Variables with which a process of Postern reaches the servers of the run. */
    serverEnv: Record<string, string>
    /** The path at which a host has mounted Postern. Empty for the standalone API. */
    mountAt: string
  }
}

/**
 * One Redis and one PostgreSQL for the run: the servers at `REDIS_URL` and `DATABASE_URL`, or private ones, which are
 * fast and not durable, and as the world `WORLD` has them. Runs at the same time share nothing: each has its own ports,
 * folder and names.
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
  const world = findWorld(process.env.WORLD)
  const redisIsGiven = Boolean(process.env.REDIS_URL)
  const postgresIsGiven = Boolean(process.env.DATABASE_URL)
  const [redis, postgres] = await Promise.all([
    redisIsGiven ? undefined : startWorldRedis(dataFolder, world),
    postgresIsGiven ? undefined : startWorldPostgres(dataFolder, world.postgres),
  ])
  const redisUrl = redis?.url ?? (process.env.REDIS_URL as string)
  const postgresUrl = postgres?.url ?? (process.env.DATABASE_URL as string)

  // For the processes of the tests, which begin later.
  if (redis?.env.CA_FILE) process.env.NODE_EXTRA_CA_CERTS = redis.env.CA_FILE

  // A run that a signal stops gets no teardown.
  process.once('exit', removeFolders)

  const templateDatabase = `postern_template_${process.pid}_${Date.now().toString(36)}`
  await migrate(await makeWorldDatabase(postgresUrl, templateDatabase, world.postgres))

  project.provide('redisUrl', redisUrl)
  project.provide('postgresUrl', postgresUrl)
  project.provide('ownerUrl', postgres?.ownerUrl ?? postgresUrl)
  project.provide('templateDatabase', templateDatabase)
  project.provide('world', world.name)
  project.provide('serverEnv', redis?.env ?? {})
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

async function runSql(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}
