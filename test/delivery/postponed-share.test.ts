import { expect, onTestFinished, test, vi } from 'vitest'
import { createPostponedShare } from '../../src/delivery/postponed-share.ts'
import type { SendResult } from '../../src/providers/provider.ts'

const accepted: SendResult = { kind: 'accepted' }
const postponed: SendResult = { kind: 'postponed', detail: 'SMTP 451 at DATA' }

function open() {
  const changes: boolean[] = []
  const share = createPostponedShare((isNearlyAll) => changes.push(isNearlyAll))
  onTestFinished(share.stop)
  let number = 0
  const add = (answer: SendResult, times = 1) => {
    for (let time = 0; time < times; time++) share.add(`user${number++}@example.test`, answer)
  }
  return { share, changes, add }
}

test('two of twenty recipients accepted → nearly all; a third one ends it', () => {
  const { share, changes, add } = open()
  add(accepted, 2)
  add(postponed, 17)
  expect(share.isNearlyAll()).toBe(false)
  add(postponed)
  expect(share.isNearlyAll()).toBe(true)
  // The oldest two are forgotten.
  add(accepted, 2)
  expect(share.isNearlyAll()).toBe(true)
  add(accepted)
  expect([share.isNearlyAll(), changes]).toEqual([false, [true, false]])
})

test('one recipient counts once, with its latest answer', () => {
  const { share, add } = open()
  add(postponed, 17)
  for (let time = 0; time < 100; time++) share.add('one@example.test', postponed)
  expect(share.isNearlyAll()).toBe(false)
  add(accepted, 2)
  expect(share.isNearlyAll()).toBe(true)
  share.add('one@example.test', accepted)
  expect(share.isNearlyAll()).toBe(false)
})

test('answers that are not about whether a message can be accepted now do not count', () => {
  const { share, add } = open()
  add(postponed, 18)
  add({ kind: 'invalid_recipient', detail: 'SMTP 550 at RCPT TO' }, 40)
  add({ kind: 'unavailable', detail: 'SMTP 421' }, 40)
  expect(share.isNearlyAll()).toBe(false)
  add(accepted, 2)
  expect(share.isNearlyAll()).toBe(true)
})

test('recipients of more than ten minutes ago do not count, and without further answers it ends', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  const { share, changes, add } = open()
  add(postponed, 10)
  vi.advanceTimersByTime(599_000)
  add(postponed, 10)
  expect(share.isNearlyAll()).toBe(true)
  vi.advanceTimersByTime(1_000)
  expect(changes).toEqual([true, false])
  add(postponed, 10)
  expect(share.isNearlyAll()).toBe(true)
})
