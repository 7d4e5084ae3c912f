import { EventEmitter } from 'node:events'
import type { Writable } from 'node:stream'
import { expect, test, vi } from 'vitest'
import { createLogOutput } from '../../src/base/log-output.ts'
import { closeLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

/** Like Node's standard output: a failed write is also an event, and the next write is tried. */
function standIn() {
  let answer: ((error?: Error) => void) | undefined
  const taken: string[] = []
  const stream = Object.assign(new EventEmitter(), {
    write(text: string, callback: (error?: Error) => void) {
      answer = (error) => {
        answer = undefined
        if (error) stream.emit('error', error)
        else taken.push(text)
        callback(error)
      }
    },
  })
  return {
    stream: stream as unknown as Writable,
    taken,
    isAsked: () => answer !== undefined,
    take: (error?: Error) => answer?.(error),
  }
}

function outputOver(stream: Writable) {
  const onDropped = vi.fn<(lines: number) => void>()
  const onResumed = vi.fn<(dropped: number) => void>()
  const output = closeLater(createLogOutput(stream, { onDropped, onResumed }))
  const dropped = () => onDropped.mock.calls.reduce((sum, [lines]) => sum + lines, 0)
  return { output, dropped, onResumed }
}

const line = `${'x'.repeat(1_023)}\n`

test('log output: lines come out whole, in their order, gathered into few writes', async () => {
  const { stream, taken, take } = standIn()
  const { output, dropped } = outputOver(stream)
  const lines = Array.from({ length: 100 }, (_, n) => `line ${n}${' '.repeat(100)}\n`)
  for (const each of lines) output.write(each)
  const closed = output.close()
  await eventually(() => {
    take()
    return taken.join('').length === lines.join('').length
  })
  await closed
  expect(taken.join('')).toBe(lines.join(''))
  expect(taken.length).toBeLessThan(10)
  expect(dropped()).toBe(0)
})

test('log output: a stalled stream is given 100 MB → 2 MB are kept at most, every other line is counted', async () => {
  const { stream, taken, isAsked, take } = standIn()
  const { output, dropped, onResumed } = outputOver(stream)
  const lines = 100 * 1_024
  for (let left = lines; left > 0; left--) output.write(line)
  expect(isAsked()).toBe(true)
  const lostWhileStalled = dropped()
  expect(lines - lostWhileStalled).toBeLessThanOrEqual(2 * 1_024)

  // The reader continues: the waiting lines come out, and the number of missing lines is reported once.
  await eventually(() => {
    take()
    return taken.join('').length === (lines - lostWhileStalled) * line.length
  })
  expect(onResumed.mock.calls).toEqual([[lostWhileStalled]])
})

test('log output: a failed write loses only its lines; the next one is tried, and reports how many', async () => {
  const { stream, taken, take } = standIn()
  const { output, dropped, onResumed } = outputOver(stream)
  for (let left = 32; left > 0; left--) output.write(line)
  take(new Error('ENOSPC'))
  expect(dropped()).toBe(32)
  expect(onResumed).not.toHaveBeenCalled()
  for (let left = 32; left > 0; left--) output.write(line)
  take()
  expect(taken).toEqual([line.repeat(32)])
  expect(onResumed.mock.calls).toEqual([[32]])
  expect(dropped()).toBe(32)
})

test('log output: closing gives a stalled stream a second and no more', async () => {
  const { stream } = standIn()
  const { output } = outputOver(stream)
  output.write(line)
  const startMs = performance.now()
  await output.close()
  expect(performance.now() - startMs).toBeGreaterThan(900)
})
