import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

/**
 * A server as a child process: started, awaited and stopped. No server is left behind, and no other program is ended.
 *
 * The child leads a separate process group. So a Ctrl-C in the terminal reaches only this process, which decides the order
 * of the shutdown. If this process is killed, the child goes on. So every start first searches the folder for a server of
 * an earlier start.
 */
export interface ServerProcess {
  readonly pid: number
  /** Whether the process has ended for any reason. */
  hasExited(): boolean
  /** Shuts the server down, and kills it after 15 s. Resolves when it has ended. */
  stop(): Promise<void>
  /** Ends the server at once, as `kill -9` does. Resolves when it has ended. */
  kill(): Promise<void>
}

/**
 * The output goes to `logFile`, because a pipe would break when this process is killed, and end the server. `stopSignal`
 * shuts the server down. It is also sent when this process exits without a stop.
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
  // A child that did not start has no pid and counts as ended.
  child.on('error', () => process.off('exit', endWithUs))
  return {
    pid: child.pid ?? 0,
    hasExited: () => hasExited(child),
    stop: () => endChild(child, stopSignal, stopDeadlineMs),
    kill: () => endChild(child, 'SIGKILL', stopDeadlineMs),
  }
}

/** Runs a program to its end. Throws if it fails. It never outlives this process. */
export async function runProgram(
  [program, ...args]: readonly [string, ...string[]],
  folder?: string,
): Promise<void> {
  const running = promisify(execFile)(program, args, { cwd: folder })
  const endWithUs = () => running.child.kill()
  process.on('exit', endWithUs)
  await running.finally(() => process.off('exit', endWithUs))
}

const stopDeadlineMs = 15_000

const hasExited = ({ pid, exitCode, signalCode }: ChildProcess) =>
  pid === undefined || exitCode !== null || signalCode !== null

/** Sends a signal, and kills the process if it has not ended within the time. Resolves when it has ended. */
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

/** Calls `isReady` until it returns true. False if the server ended or the time ran out. */
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
 * Stops the server that an earlier start left running in a folder. Throws if the process that started it still runs,
 * because that server is in use.
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
 * The process of a pid file, if it runs and its command line contains `mark`. Otherwise the pid belongs to another program
 * by now. The file is then removed, because PostgreSQL would mistake that program for itself and refuse to start.
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
    // The process ended between the check and the signal.
  }
}

/** Empty for a process that has ended (or is a zombie). */
function commandLineOf(pid: number): string {
  if (existsSync('/proc/self/cmdline'))
    return readIfThere(`/proc/${pid}/cmdline`).replaceAll('\0', ' ')
  return ps(pid, 'command')
}

/** 0 or NaN for a process that has ended. */
export function parentOf(pid: number): number {
  if (existsSync('/proc/self/stat')) {
    // The second field is the name of the program in brackets. The name may contain spaces and brackets.
    return Number(
      readIfThere(`/proc/${pid}/stat`)
        .replace(/^.*\) \S+ /s, '')
        .split(' ', 1)[0],
    )
  }
  return Number(ps(pid, 'ppid'))
}

/** Empty for a missing file, because it may vanish between a check and a read. */
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

const [firstPort, portCount] = [15_000, 15_000]
let nextPort = firstPort + (process.pid % 150) * 100

/**
 * A free loopback port below the range of outgoing connections. In that range, a client that reconnects to a dead port
 * could get the same port as its source, and connect to itself.
 *
 * Each process takes its ports in turn, from another place than its neighbours. A random port could be one that another
 * process has found free and not bound yet. It could also be the port of a server that is being restarted.
 */
export async function findFreePort(): Promise<number> {
  for (let tries = 0; tries < portCount; tries++) {
    const port = nextPort
    nextPort = port + 1 < firstPort + portCount ? port + 1 : firstPort
    const probe = createServer()
    try {
      probe.listen({ port, host: '127.0.0.1', exclusive: true })
      await once(probe, 'listening')
      return port
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    } finally {
      probe.close()
    }
  }
  throw new Error(`no free port from ${firstPort} to ${firstPort + portCount - 1}`)
}

/** Sends one line to a loopback port and returns the first answer, or an empty text. */
export async function askPort(port: number, line: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', timeout: 1_000 })
  // Without an error, the wait for data would never end.
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
