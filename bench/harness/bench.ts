/**
 * The base of all benches: separate servers, and separate processes for measured programs and for the load. So none
 * uses the processor time of another. All of them end with the bench.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { stringify } from 'yaml'
import { createKeyToken } from '../../src/access/key-token.ts'
import { startPrivatePostgres } from '../../src/dev/private-postgres.ts'
import { startPrivateRedis } from '../../src/dev/private-redis.ts'
import type { PrivateServer } from '../../src/dev/private-server.ts'
import { findFreePort } from '../../src/dev/server-process.ts'
import { migrate } from '../../src/storage/migrate.ts'

export const repository = resolve(import.meta.dirname, '../..')
export const secret = 'a secret for the benchmark, 32 bytes or more'
/** The API key in every API process of this run. */
export const key = createKeyToken('secret')

/** Servers and processes. `close` ends them and everything else that was registered, the last one first. */
export interface RedisBench {
  /** A folder for files of the bench. It is removed at the end. */
  readonly folder: string
  readonly redis: PrivateServer
  closeLater(close: () => unknown): void
  close(): Promise<void>
}

export interface Bench extends RedisBench {
  readonly postgres: PrivateServer
  /**
   * A process of Postern, or a process for comparison with the same settings. Each prints a first line when it is
   * ready, so this resolves when it can be used.
   */
  start(file: string, policyFile?: object, more?: StartOptions): Promise<BenchProcess>
  /** A helper process that gets messages. */
  fork(file: string, args: readonly (string | number)[]): ChildProcess
}

interface StartOptions {
  readonly env?: Readonly<Record<string, string>> | undefined
  /** Default: the repository. */
  readonly cwd?: string | undefined
}

export interface BenchProcess {
  readonly url: string
  readonly adminUrl: string
  readonly pid: number
  stop(): Promise<void>
  /** `kill -9`. */
  kill(): Promise<void>
}

/** With Redis alone. */
export async function openRedisBench(flags: readonly string[] = []): Promise<RedisBench> {
  // After an interrupt, the servers end with this process.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))
  const folder = mkdtempSync(join(tmpdir(), 'postern-bench-'))
  const redis = await startPrivateRedis({ dataDir: join(folder, 'redis'), flags })
  const closers: (() => unknown)[] = [
    () => rmSync(folder, { recursive: true, force: true }),
    () => redis.stop(),
  ]
  return {
    folder,
    redis,
    closeLater: (close) => void closers.push(close),
    async close() {
      for (const close of closers.reverse()) await close()
    },
  }
}

/** With Redis and PostgreSQL, as durable as in production. `isEmpty`: without the tables of Postern. */
export async function openBench(
  postgresFlags: readonly string[] = [],
  isEmpty = false,
): Promise<Bench> {
  const bench = await openRedisBench()
  const { folder, redis, closeLater } = bench
  const postgres = await startPrivatePostgres({
    dataDir: join(folder, 'postgres'),
    flags: postgresFlags,
  })
  closeLater(() => postgres.stop())
  if (!isEmpty) await migrate(postgres.url)
  const endLater = (child: ChildProcess) => {
    const end = () => child.kill('SIGKILL')
    closeLater(end)
    process.on('exit', end)
    return child
  }

  async function start(
    file: string,
    policyFile: object = {},
    { env, cwd = repository }: StartOptions = {},
  ): Promise<BenchProcess> {
    const [port, adminPort] = [await findFreePort(), await findFreePort()]
    const configFile = join(folder, `policy-${port}.yaml`)
    const templates = join(repository, 'templates')
    writeFileSync(configFile, stringify({ templates, ...policyFile }))
    const child = spawn(process.execPath, [file], {
      cwd,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        PATH: process.env.PATH,
        NODE_ENV: 'production',
        HOST: '127.0.0.1',
        PORT: String(port),
        ADMIN_PORT: String(adminPort),
        DATABASE_URL: postgres.url,
        REDIS_URL: redis.url,
        SECRET: secret,
        BOOTSTRAP_SECRET_KEY: key,
        POSTERN_CONFIG: configFile,
        ...env,
      },
    })
    endLater(child)
    const ended = once(child, 'exit').then(() => {
      throw new Error(`${file} ended before it was ready`)
    })
    await Promise.race([once(child.stdout, 'data'), ended])
    child.stdout.resume()
    const end = async (signal: NodeJS.Signals) => {
      child.kill(signal)
      await once(child, 'exit')
    }
    return {
      url: `http://127.0.0.1:${port}`,
      adminUrl: `http://127.0.0.1:${adminPort}`,
      pid: child.pid as number,
      stop: () => end('SIGTERM'),
      kill: () => end('SIGKILL'),
    }
  }

  const forkOne = (file: string, args: readonly (string | number)[]) =>
    endLater(fork(file, args.map(String)))
  return { ...bench, postgres, start, fork: forkOne }
}
