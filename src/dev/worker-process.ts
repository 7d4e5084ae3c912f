/**
 * The demo's worker and who looks after it: when it ends unasked, another is started after a pause in which a visitor sees
 * that what was accepted waits and is not lost. A real supervisor does the same, only sooner.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { endChild } from './server-process.ts'

const restartAfterMs = 6_000
/** Longer than the worker gives itself. */
const stopWithinMs = 21_000

export type WorkerState =
  | { kind: 'starting' | 'ready'; pid: number }
  | { kind: 'down'; restartsInMs: number }

export type WorkerProcess = ReturnType<typeof startWorkerProcess>

/** `env` is all that it gets. */
export function startWorkerProcess(env: Readonly<Record<string, string | undefined>>) {
  let child = begin()
  let exited: Promise<unknown> = once(child, 'exit')
  let isReady = false
  let isClosing = false
  let restart: { timer: NodeJS.Timeout; atMs: number } | undefined
  /** Resolves when the first one works, or rejects when it ended before. */
  const ready = Promise.race([
    once(child, 'message'),
    exited.then(() => {
      throw new Error('the worker ended at its start')
    }),
  ])
  watch()
  // A child must not outlive us where a close came to nothing.
  const endWithUs = () => child.kill('SIGKILL')
  process.on('exit', endWithUs)

  function begin(): ChildProcess {
    return fork(fileURLToPath(new URL('demo-worker.ts', import.meta.url)), {
      // A group of its own: a Ctrl-C reaches us alone, and we end it in order.
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

    /** As the kernel does when memory runs out. Resolves when it is gone. */
    async kill(): Promise<void> {
      if (restart) return
      child.kill('SIGKILL')
      await exited
    },

    /** Lets it end what is under way. */
    async close(): Promise<void> {
      isClosing = true
      clearTimeout(restart?.timer)
      await endChild(child, 'SIGTERM', stopWithinMs)
      process.off('exit', endWithUs)
    },
  }
}
