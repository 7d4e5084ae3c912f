/**
 * The destination of log lines. Standard output may stall (a stopped reader, a terminal after Ctrl-S), be closed, or
 * lie on a full disk. None of that may delay a request, fill the memory or delay the end of the process. So writing
 * never waits, the queue is bounded, and lines without room are dropped and counted.
 *
 * pino's destination is not used. It writes in a thread of libuv's pool. If that write never ends, the process can't
 * exit. Node's stream never waits on a pipe or a terminal, and on a file it waits for the disk only.
 */
import type { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

/** Lines are gathered into one write of this size, or one write a second. */
const gatheredLength = 32_768
const flushEveryMs = 1_000
/** Limit of the waiting lines. A write under way may have the same length. */
const maxWaitingLength = 1_048_576
const closeWithinMs = 1_000

export function createLogOutput(
  stream: Writable,
  options: {
    /** Called at once with the number of dropped lines. */
    readonly onDropped: (lines: number) => void
    /** Called when lines can be written again, with the number dropped since the last call. */
    readonly onResumed: (dropped: number) => void
  },
) {
  let waiting: string[] = []
  let waitingLength = 0
  let isWriting = false
  let droppedSinceResumed = 0

  function drop(lines: number): void {
    droppedSinceResumed += lines
    options.onDropped(lines)
  }

  function flush(): void {
    if (isWriting || waiting.length === 0) return
    const lines = waiting
    waiting = []
    waitingLength = 0
    isWriting = true
    stream.write(lines.join(''), (error) => {
      isWriting = false
      if (error) drop(lines.length)
      else if (droppedSinceResumed > 0) {
        const dropped = droppedSinceResumed
        droppedSinceResumed = 0
        options.onResumed(dropped)
      }
      if (waitingLength >= gatheredLength) flush()
    })
  }

  // The write's callback gets the error too. Without this listener the error would end the process.
  if (!stream.listeners('error').includes(ignore)) stream.on('error', ignore)
  const flushing = setInterval(flush, flushEveryMs).unref()
  // Covers an exit that waits for nothing, as after a second signal.
  process.on('exit', flush)

  return {
    write(line: string) {
      if (waitingLength + line.length > maxWaitingLength) return drop(1)
      waiting.push(line)
      waitingLength += line.length
      if (waitingLength >= gatheredLength) flush()
    },
    /** Writes the gathered lines, for one second at most. */
    async close(): Promise<void> {
      const deadline = performance.now() + closeWithinMs
      flush()
      while ((isWriting || waiting.length > 0) && performance.now() < deadline) {
        await sleep(5)
        flush()
      }
      clearInterval(flushing)
      process.off('exit', flush)
    },
  }
}

const ignore = () => {}
