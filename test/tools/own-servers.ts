import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmdirSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject } from 'vitest'
import { startPrivatePostgres } from '../../src/dev/private-postgres.ts'
import { startPrivateRedis } from '../../src/dev/private-redis.ts'
import type { PrivateServer, PrivateServerOptions } from '../../src/dev/private-server.ts'
import { parentOf } from '../../src/dev/server-process.ts'
import { findWorld } from '../worlds/worlds.ts'
import { copyFreshPostgres } from './fresh-postgres.ts'
import { releaseLater } from './release.ts'
import { postgresOf, redisProgramOf } from './world.ts'

/** A server of one test, which may break it. Its address stays the same after restarts. */
export interface OwnServer {
  readonly url: string
  readonly port: number
  readonly dataDir: string
  pid(): number
  /** Ends it in good order. */
  stop(): Promise<void>
  /** `kill -9`. */
  kill(): Promise<void>
  /** Connections stay open and get no answers, until `thaw`. */
  freeze(): void
  thaw(): void
  /** Starts it again on the same port with the same data (and other flags, if given). */
  start(flags?: readonly string[]): Promise<void>
}

/**
 * With append-only file as in production, unless the flags set something else. `password`: for servers that share
 * one.
 */
export function ownRedis(flags?: readonly string[], password?: string): Promise<OwnServer> {
  const program = redisProgramOf(findWorld(inject('world')))
  const start: typeof startPrivateRedis = (options) => startPrivateRedis({ ...options, program })
  return ownServer(start, flags, async (dataDir) => {
    // If it exists, the server uses it and makes none.
    if (password) await writeFile(join(dataDir, 'password'), password, { mode: 0o600 })
  })
}

/**
 * Durable as in production; not migrated. With the version and settings of the run's world. `diskMb`: on a disk of that
 * size, which only root can mount.
 */
export function ownPostgres(flags?: readonly string[], diskMb?: number): Promise<OwnServer> {
  const world = postgresOf(findWorld(inject('world')).postgres)
  const start: typeof startPrivatePostgres = (options) =>
    startPrivatePostgres({
      ...options,
      flags: [...world.flags, ...(options.flags ?? [])],
      programs: world.programs,
    })
  return ownServer(start, flags, async (dataDir) => {
    if (diskMb) {
      if (!mountDisk(dataDir, diskMb)) throw new Error('a small disk cannot be mounted here')
      releaseLater(() => unmountDisk(dataDir))
    }
    await copyFreshPostgres(inject('dataFolder'), dataDir)
  })
}

/** Whether `ownPostgres` can have a disk of a limited size. Containers may forbid it to root too. */
export function canMountDisk(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'postern-disk-'))
  const isMounted = mountDisk(folder, 1)
  if (isMounted) unmountDisk(folder)
  rmdirSync(folder)
  return isMounted
}

const mountDisk = (folder: string, sizeMb: number) =>
  spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${sizeMb}m`, 'tmpfs', folder]).status === 0

const unmountDisk = (folder: string) => spawnSync('umount', ['--lazy', folder])

async function ownServer(
  startServer: (options: PrivateServerOptions) => Promise<PrivateServer>,
  firstFlags: readonly string[] = [],
  prepare: (dataDir: string) => Promise<void>,
): Promise<OwnServer> {
  const dataDir = await mkdtemp(join(inject('dataFolder'), 'own-'))
  // The children of a killed PostgreSQL still write for a moment.
  releaseLater(() => rm(dataDir, { recursive: true, maxRetries: 20, retryDelay: 50 }))
  await prepare(dataDir)
  let flags = firstFlags
  let server = await startServer({ dataDir, flags })
  const { url, port } = server
  const signalAll = (signal: NodeJS.Signals) => {
    for (const pid of [server.pid, ...childrenOf(server.pid)]) process.kill(pid, signal)
  }
  releaseLater(() => server.kill())
  return {
    url,
    port,
    dataDir,
    pid: () => server.pid,
    stop: () => server.stop(),
    kill: () => server.kill(),
    freeze: () => signalAll('SIGSTOP'),
    thaw: () => signalAll('SIGCONT'),
    async start(newFlags = flags) {
      flags = newFlags
      server = await startServer({ dataDir, port, flags })
    },
  }
}

/** PostgreSQL answers each connection in a separate process. */
export function childrenOf(parent: number): number[] {
  if (!existsSync('/proc/self/stat')) {
    const { stdout } = spawnSync('pgrep', ['-P', String(parent)], { encoding: 'utf8' })
    return stdout.split('\n').filter(Boolean).map(Number)
  }
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((pid) => parentOf(pid) === parent)
}
