/**
 * Runs the worker of the demo. If the worker ends unexpectedly, another one starts after a pause. In the pause, a visitor
 * sees that accepted messages wait and are not lost. A real supervisor does the same, but sooner.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { endChild } from './server-process.ts'

const restartAfterMs = 6_000
/** Longer than the worker's own time limit for its end. */
const stopWithinMs = 21_000

export type WorkerState =
  | { kind: 'starting' | 'ready'; pid: number }
  | { kind: 'down'; restartsInMs: number }

export type WorkerProcess = ReturnType<typeof startWorkerProcess>

/** `env` is the whole environment of the worker. */
export function startWorkerProcess(env: Readonly<Record<string, string | undefined>>) {
  let child = begin()
  let exited: Promise<unknown> = once(child, 'exit')
  let isReady = false
  let isClosing = false
  let restart: { timer: NodeJS.Timeout; atMs: number } | undefined
  /** Resolves when the first worker is ready. Rejects if it ended before. */
  const ready = Promise.race([
    once(child, 'message'),
    exited.then(() => {
      throw new Error('the worker ended at its start')
    }),
  ])
  watch()
  // The child must not outlive this process after a failed close.
  const endWithUs = () => child.kill('SIGKILL')
  process.on('exit', endWithUs)

  function begin(): ChildProcess {
    return fork(fileURLToPath(new URL(`demo-worker${extname(import.meta.url)}`, import.meta.url)), {
      // A separate process group: a Ctrl-C reaches only this process, which ends the worker in order.
      detached: true,
      env: { ...env },
    })
  }

  function watch(): void {
    child.once('message', () => {
      isReady = true
    })
    child.once('exit', () => {
      isReady = false
      if (isClosing) return
      const timer = setTimeout(() => {
        restart = undefined
        child = begin()
        exited = once(child, 'exit')
        watch()
      }, restartAfterMs)
      restart = { timer, atMs: performance.now() + restartAfterMs }
    })
  }

  return {
    ready,

    state(): WorkerState {
      if (restart) {
        const restartsInMs = Math.max(0, Math.round(restart.atMs - performance.now()))
        return { kind: 'down', restartsInMs }
      }
      return { kind: isReady ? 'ready' : 'starting', pid: child.pid ?? 0 }
    },

    /** Kills the worker as the kernel does when memory is full. Resolves when it has ended. */
    async kill(): Promise<void> {
      if (restart) return
      child.kill('SIGKILL')
      await exited
    },

    /** Stops the worker after it has finished the work under way. */
    async close(): Promise<void> {
      isClosing = true
      clearTimeout(restart?.timer)
      await endChild(child, 'SIGTERM', stopWithinMs)
      process.off('exit', endWithUs)
    },
  }
}
