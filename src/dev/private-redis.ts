import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findOrInstall } from './find-or-install.ts'
import {
  openFolder,
  type PrivateServer,
  type PrivateServerOptions,
  passwordOf,
  startOnFreePort,
} from './private-server.ts'
import { askPort, startServerProcess, stopLeftover } from './server-process.ts'

export interface PrivateRedisOptions extends PrivateServerOptions {
  /** Default: a Redis or Valkey on the PATH. */
  readonly program?: string | undefined
}

/** Starts Redis as production should run it: an append-only file, flushed every second, and no eviction. */
export async function startPrivateRedis(options: PrivateRedisOptions): Promise<PrivateServer> {
  const program =
    options.program ?? findOrInstall(['redis-server', 'valkey-server'], 'redis-server', redisAdvice)
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
    // Keeps the path of the configuration on the command line. A later start finds the process by it.
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

const redisAdvice =
  'No redis-server or valkey-server found: install one (macOS: brew install redis; Fedora: dnf install valkey; Alpine: apk add redis; Debian, Ubuntu: apt-get install redis-server), or set REDIS_URL'
