/**
 * Where log lines go. Standard output may stall (a reader that was stopped, a terminal after Ctrl-S), be
 * closed, or lie on a full disk, and none of that may hold up a request, the memory or the end of the
 * process: writing never waits, what waits is bounded, and lines without room are dropped and counted.
 *
 * Not pino's own destination, which writes in a thread of libuv's pool: a thread that is stuck in a write
 * keeps a process from exiting for ever. Node's stream over a pipe or a terminal does not wait, and one
 * over a file waits for the disk only.
 */
import type { Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

export interface LogOutput {
  write(line: string): void
  /** Writes out what is gathered, as far as that goes within a second. */
  close(): Promise<void>
}

export interface LogOutputOptions {
  /** Told at once how many lines were lost. */
  readonly onDropped: (lines: number) => void
  /** Told how many were lost in all since the last time, once there is room again. */
  readonly onResumed: (dropped: number) => void
}

/** Lines are gathered into one write of this size, at the latest after a second. */
const gatheredLength = 4_096
const flushEveryMs = 1_000
/** Of lines that wait for room; the write under way may hold as much again. */
const maxWaitingLength = 1_048_576
const closeWithinMs = 1_000

export function createLogOutput(stream: Writable, options: LogOutputOptions): LogOutput {
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

  // A failed write is told to its callback as well; without this it would end the process.
  if (!stream.listeners('error').includes(ignore)) stream.on('error', ignore)
  const flushing = setInterval(flush, flushEveryMs).unref()
  // For an exit that does not wait for anything, as after a second signal.
  process.on('exit', flush)

  return {
    write(line) {
      if (waitingLength + line.length > maxWaitingLength) return drop(1)
      waiting.push(line)
      waitingLength += line.length
      if (waitingLength >= gatheredLength) flush()
    },
    async close() {
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
