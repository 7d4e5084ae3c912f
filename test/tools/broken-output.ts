import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { closeSync, constants, openSync } from 'node:fs'
import { join } from 'node:path'
import { inject } from 'vitest'
import { releaseLater } from './release.ts'

export type BrokenOutput = 'stalled' | 'closed' | 'on a full disk'

export const brokenOutputs: readonly BrokenOutput[] = ['stalled', 'closed', 'on a full disk']

/**
 * A file descriptor for the standard output of a child: a pipe whose reader has stopped, one whose reader has gone,
 * or a full disk. Call `handOver` when the child has the descriptor.
 */
export function openBrokenOutput(how: BrokenOutput): { fd: number; handOver(): void } {
  if (how === 'on a full disk') {
    const fd = openSync('/dev/full', 'w')
    return { fd, handOver: () => closeSync(fd) }
  }
  const fifo = join(inject('runFolder'), `output-${randomBytes(6).toString('hex')}`)
  execFileSync('mkfifo', [fifo])
  const reader = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK)
  const fd = openSync(fifo, 'w')
  if (how === 'stalled') releaseLater(() => closeSync(reader))
  return {
    fd,
    handOver() {
      closeSync(fd)
      if (how === 'closed') closeSync(reader)
    },
  }
}
