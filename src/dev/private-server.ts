import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findFreePort, readIfThere, type ServerProcess, untilReady } from './server-process.ts'

/**
 * A private PostgreSQL or Redis for the demo and the tests, if no server is given.
 *
 * Each has one folder for data, log and password. It listens on a free loopback port, chosen at each start. It needs a
 * password, because every user of the machine can reach loopback. After a `kill -9` of the demo, the next start in the
 * same folder stops the old server and finds its data.
 */
export interface PrivateServer {
  readonly url: string
  readonly port: number
  readonly pid: number
  /** Shuts the server down (all data on disk). Resolves when it has ended. */
  stop(): Promise<void>
  /** Ends the server as a crash would. */
  kill(): Promise<void>
}

export interface PrivateServerOptions {
  /** Made if absent. It contains only files of this server. */
  readonly dataDir: string
  /** Default: any free port. */
  readonly port?: number
  /** More arguments of the server. They override the arguments set here. */
  readonly flags?: readonly string[]
}

interface Startable {
  url(port: number): string
  start(port: number): ServerProcess
  isReady(port: number, pid: number): boolean | Promise<boolean>
}

/**
 * Another program may take a free port before the server binds it. The children of a killed PostgreSQL also keep its
 * shared memory for a moment. Both end the new server at once, and the next try succeeds.
 */
export async function startOnFreePort(
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
    await sleep(100)
  }
}

/**
 * Makes a folder and its missing parents. `mkdirSync` with `recursive` would try for ever below a folder such as /proc,
 * which refuses new folders with ENOENT.
 */
export function makeFolder(path: string, mode = 0o777): void {
  if (existsSync(path)) return
  makeFolder(dirname(path), mode)
  mkdirSync(path, { mode })
}

export function openFolder(path: string): string {
  const dataDir = resolve(path)
  makeFolder(dataDir, 0o700)
  chmodSync(dataDir, 0o700)
  return dataDir
}

/** The password of a folder; it never changes. */
export function passwordOf(dataDir: string): string {
  const file = join(dataDir, 'password')
  if (readIfThere(file) === '')
    writeFileSync(file, randomBytes(18).toString('hex'), { mode: 0o600 })
  return readFileSync(file, 'utf8')
}
