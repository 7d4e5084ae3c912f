import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findFreePort } from '../../src/dev/server-process.ts'
import { releaseLater } from './release.ts'
import { eventually } from './wait.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Variables that a world (`npm run test:worlds`) sets for all processes. */
const worldEnv = Object.fromEntries(
  ['TZ', 'LANG', 'NODE_OPTIONS', 'NODE_EXTRA_CA_CERTS']
    .filter((name) => process.env.WORLD && process.env[name])
    .map((name) => [name, process.env[name] as string]),
)

/** All processes keep compiled modules here. Removing types and compiling was a third of a start. */
export const commonEnv = {
  ...worldEnv,
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/postern-tests'),
}

const entryPath = (name: string, checkout = root) =>
  join(
    checkout,
    name === 'demo'
      ? 'src/dev/demo.ts'
      : /keys|migrate|policy|doctor/.test(name)
        ? `src/main/commands/${name}.ts`
        : `src/main/${name}.ts`,
  )

export interface StartOptions {
  /**
   * Its whole environment besides PATH, its ports and loopback as its host. Nothing else of this process is passed
   * on.
   */
  readonly env?: Readonly<Record<string, string>>
  readonly args?: readonly string[]
  /** The folder where it starts, e.g. beside an `.env`. By default the repository. */
  readonly cwd?: string
  /** A command line in place of `node src/…`. */
  readonly command?: readonly [string, ...string[]]
  /** Another copy of the repository than this one. */
  readonly checkout?: string
  /** A file descriptor in place of the pipe that `output()` reads. */
  readonly stdout?: number
  /** By default: its `/readyz` answers 200. */
  readonly isReady?: (process: PosternProcess) => boolean | Promise<boolean>
  readonly withinMs?: number
}

export interface PosternProcess {
  readonly pid: number
  /** The public port's URL. */
  readonly url: string
  readonly adminUrl: string
  /** All output to stdout and stderr so far. */
  output(): string
  /** Sends SIGTERM. Returns the exit code, or the signal that ended it. */
  terminate(): Promise<number | string>
  /** `kill -9`. */
  kill(): Promise<void>
  signal(name: NodeJS.Signals): void
  hasExited(): boolean
  /** The exit code, or the signal that ended it. */
  readonly exited: Promise<number | string>
}

/** One of Postern's entry points as a separate process, ready to be used. It is killed after the test. */
export async function startProcess(
  entryPoint: 'api' | 'worker' | 'demo',
  options: StartOptions = {},
): Promise<PosternProcess> {
  const { isReady = readyzAnswers, withinMs = 120_000 } = options
  const [program, ...args] = options.command ?? [
    process.execPath,
    entryPath(entryPoint, options.checkout),
  ]
  const [port, adminPort] = [await findFreePort(), await findFreePort()]
  const host = options.env?.HOST ?? '127.0.0.1'
  const child = spawn(program, [...args, ...(options.args ?? [])], {
    cwd: options.cwd ?? options.checkout ?? root,
    stdio: ['ignore', options.stdout ?? 'pipe', 'pipe'],
    env: {
      ...commonEnv,
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
      HOST: host,
      ...options.env,
    },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const hasExited = () => child.exitCode !== null || child.signalCode !== null
  const exited = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string)
  const started: PosternProcess = {
    pid: child.pid as number,
    url: `http://${host}:${options.env?.PORT ?? port}`,
    adminUrl: `http://${host}:${options.env?.ADMIN_PORT ?? adminPort}`,
    output: () => output,
    hasExited,
    exited,
    signal: (name) => child.kill(name),
    terminate() {
      child.kill('SIGTERM')
      return exited
    },
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
  releaseLater(() => started.kill())

  try {
    // It takes at least a second, so frequent questions would only slow it down.
    await eventually(async () => hasExited() || (await isReady(started)), { withinMs, everyMs: 50 })
  } catch (error) {
    throw new Error(`${entryPoint} did not become ready; its output:\n${output}`, { cause: error })
  }
  if (hasExited()) throw new Error(`${entryPoint} ended at its start; its output:\n${output}`)
  return started
}

/** The flags of Node in `bin/postern`. */
export const shippedFlags = '--max-semi-space-size=16'

/** The most memory that a process ever had, in MB. */
export async function mostMb({ pid }: Pick<PosternProcess, 'pid'>): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) / 1_024
}

/** A command that does its work and ends. The code is 0 after success. */
export function runCommand(
  command: 'migrate' | 'keys' | 'policy' | 'doctor' | 'api' | 'worker' | 'demo',
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
  cwd = root,
): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((done) => {
    const options = { cwd, timeout: 120_000, env: { ...commonEnv, ...env } }
    execFile(process.execPath, [entryPath(command), ...args], options, (error, stdout, stderr) => {
      done({ code: error ? Number(error.code ?? -1) : 0, stdout, stderr })
    })
  })
}

async function readyzAnswers(started: PosternProcess): Promise<boolean> {
  const response = await fetch(`${started.adminUrl}/readyz`, {
    headers: { connection: 'close' },
    signal: AbortSignal.timeout(2_000),
  })
  await response.body?.cancel()
  return response.status === 200
}
