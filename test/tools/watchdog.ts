import { Worker } from 'node:worker_threads'

/**
 * From now on this process runs the tests of `file`. If its event loop stands still, or if the file takes longer than
 * any may, a thread prints where it stands and ends the process. Vitest's own time limits are timers of the same loop,
 * and it waits without end for a process that stands still. Such a run would end without a result and without a name.
 */
export function watchFile(file: string): void {
  const shared = globalThis as { [place]?: Worker }
  shared[place] ??= startThread()
  shared[place].postMessage(file)
}

/** Each file loads this module anew. The files of one process share the thread. */
const place: unique symbol = Symbol.for('watchdog of the tests')

function startThread(): Worker {
  const beats = new Int32Array(new SharedArrayBuffer(4))
  setInterval(() => Atomics.add(beats, 0, 1), 1_000).unref()
  const thread = new Worker(new URL('./watchdog-thread.ts', import.meta.url), {
    workerData: { beats, ...limits },
  })
  thread.unref()
  return thread
}

const limits = {
  /** Processor time: a busy machine does not change it. */
  spinSeconds: Number(process.env.TEST_SPIN_SECONDS ?? 90),
  /** For a wait that blocks the process, such as one for a program. A busy machine makes both longer. */
  blockSeconds: 600,
  fileSeconds: Number(process.env.TEST_FILE_SECONDS ?? 900),
}
