import { randomBytes } from 'node:crypto'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeFolder } from './make-folder.ts'
import { findFreePort, readIfThere, type ServerProcess, untilReady } from './server-process.ts'

/**
 * A server of our own, PostgreSQL or Redis, for the demo and the tests, where none is given.
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

export function openFolder(path: string): string {
  const dataDir = resolve(path)
  makeFolder(dataDir, 0o700)
  chmodSync(dataDir, 0o700)
  return dataDir
}

/** The same for as long as the folder lives. */
export function passwordOf(dataDir: string): string {
  const file = join(dataDir, 'password')
  if (readIfThere(file) === '')
    writeFileSync(file, randomBytes(18).toString('hex'), { mode: 0o600 })
  return readFileSync(file, 'utf8')
}
