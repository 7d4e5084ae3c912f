import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Another program's server as a child of ours: begun, awaited and ended without ever leaving one
 * behind or ending a stranger's.
 *
 * The child leads a process group of its own, so a Ctrl-C in the terminal reaches only us and we
 * decide the order in which things end. The price is that it outlives us when we are killed.
 * So every start first looks for the server that an earlier life left in the same folder.
 */
export interface ServerProcess {
  readonly pid: number
  /** Whether it has ended, by itself or by us. */
  hasExited(): boolean
  /** Asks it to end in good order and returns once it is gone; after 15 s it is killed. */
  stop(): Promise<void>
  /** Ends it at once, as `kill -9` does, and returns once it is gone. */
  kill(): Promise<void>
}

/**
 * What it writes goes to `logFile`: a pipe would break when we are killed, and take the server along.
 * `stopSignal` is the one that ends it in good order; it gets that too when we exit without a stop.
 */
export function startServerProcess(
  command: readonly [string, ...string[]],
  logFile: string,
  stopSignal: NodeJS.Signals,
): ServerProcess {
  const [program, ...args] = command
  const log = openSync(logFile, 'w', 0o600)
  let child: ChildProcess
  try {
    child = spawn(program, args, { detached: true, stdio: ['ignore', log, log] })
  } finally {
    closeSync(log)
  }
  const endWithUs = () => child.kill(stopSignal)
  process.on('exit', endWithUs)
  child.on('exit', () => process.off('exit', endWithUs))
  // Such a child never was: it has no pid, and counts as exited.
  child.on('error', () => process.off('exit', endWithUs))
  return {
    pid: child.pid ?? 0,
    hasExited: () => hasExited(child),
    stop: () => endChild(child, stopSignal, stopDeadlineMs),
    kill: () => endChild(child, 'SIGKILL', stopDeadlineMs),
  }
}

const stopDeadlineMs = 15_000

const hasExited = ({ pid, exitCode, signalCode }: ChildProcess) =>
  pid === undefined || exitCode !== null || signalCode !== null

/** Resolves when it is gone. It is killed where the signal has not ended it within the time. */
export async function endChild(
  child: ChildProcess,
  signal: NodeJS.Signals,
  withinMs: number,
): Promise<void> {
  if (hasExited(child)) return
  const exited = once(child, 'exit')
  const killLater = setTimeout(() => child.kill('SIGKILL'), withinMs)
  child.kill(signal)
  child.kill('SIGCONT')
  await exited
  clearTimeout(killLater)
}

/** Asks `isReady` until it says so; false when the server ended or the time ran out. */
export async function untilReady(
  server: ServerProcess,
  isReady: () => boolean | Promise<boolean>,
  withinMs = 20_000,
): Promise<boolean> {
  const deadline = performance.now() + withinMs
  while (!server.hasExited() && performance.now() < deadline) {
    if (await isReady()) return true
    await sleep(10)
  }
  return false
}

/**
 * Stops the server that an earlier life of ours left running in a folder. One whose own starter is
 * alive is not left over but in use, and then this throws.
 */
export async function stopLeftover(
  pidFile: string,
  mark: string,
  signal: NodeJS.Signals,
): Promise<void> {
  const pid = findServer(pidFile, mark)
  if (!pid) return
  const parent = parentOf(pid)
  if (parent === process.pid || (parent > 1 && /\bnode\b/.test(commandLineOf(parent)))) {
    throw new Error(`${mark} is in use by process ${parent}: stop that first`)
  }
  const deadline = performance.now() + stopDeadlineMs
  tryKill(pid, signal)
  tryKill(pid, 'SIGCONT')
  while (commandLineOf(pid).includes(mark)) {
    if (performance.now() > deadline) tryKill(pid, 'SIGKILL')
    await sleep(20)
  }
}

/**
 * The process of a pid file, if it runs and its command line still names `mark`: a pid may belong to
 * a stranger by now. Such a file is removed, because PostgreSQL would take the stranger for itself
 * and refuse to start.
 */
export function findServer(pidFile: string, mark: string): number | undefined {
  const pid = Number.parseInt(readIfThere(pidFile), 10)
  if (!(pid > 1)) return undefined
  const commandLine = commandLineOf(pid)
  if (commandLine.includes(mark)) return pid
  if (commandLine) rmSync(pidFile, { force: true })
  return undefined
}

function tryKill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It ended between our look and our signal.
  }
}

/** Empty for a process that is gone (or a zombie, which is as good). */
function commandLineOf(pid: number): string {
  if (existsSync('/proc/self/cmdline'))
    return readIfThere(`/proc/${pid}/cmdline`).replaceAll('\0', ' ')
  return ps(pid, 'command')
}

/** 0 or NaN for a process that is gone. */
export function parentOf(pid: number): number {
  if (existsSync('/proc/self/stat')) {
    // The second field is the program's name in brackets, which may itself hold spaces and brackets.
    return Number(
      readIfThere(`/proc/${pid}/stat`)
        .replace(/^.*\) \S+ /s, '')
        .split(' ', 1)[0],
    )
  }
  return Number(ps(pid, 'ppid'))
}

/** Empty for a file that is not there: it may vanish between a look and a read. */
export function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

function ps(pid: number, column: string): string {
  return spawnSync('ps', ['-p', String(pid), '-o', `${column}=`], { encoding: 'utf8' }).stdout ?? ''
}

/**
 * A free loopback port. Taken from below the range the system hands to outgoing
 * connections: a client that reconnects for ever to a dead port inside that range will one day be
 * given that very port and talk to itself.
 */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 15_000)
    const probe = createServer()
    try {
      probe.listen({ port, host: '127.0.0.1', exclusive: true })
      await once(probe, 'listening')
      return port
    } catch {
      // Taken: try another.
    } finally {
      probe.close()
    }
  }
}

/** Sends one line to a loopback port and returns the first thing that comes back, or nothing. */
export async function askPort(port: number, line: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', timeout: 1_000 })
  // Without an error those who wait for data would never hear of it.
  socket.on('timeout', () => socket.destroy(new Error('no answer')))
  try {
    await once(socket, 'connect')
    socket.write(line)
    const [answer] = await once(socket, 'data')
    return String(answer)
  } catch {
    return ''
  } finally {
    socket.destroy()
  }
}
