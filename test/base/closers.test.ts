import { expect, test } from 'vitest'
import { createClosers } from '../../src/base/closers.ts'

test('closes in reverse order, each one once, and reports the first failure after the last', async () => {
  const { onClose, close } = createClosers()
  const closed: string[] = []
  for (const name of ['pool', 'queue', 'server']) {
    onClose(() => {
      closed.push(name)
      if (name !== 'pool') throw new Error(`${name} does not close`)
    })
  }
  await expect(close()).rejects.toThrow('server does not close')
  await expect(close()).rejects.toThrow('server does not close')
  expect(closed).toEqual(['server', 'queue', 'pool'])
})

test('a part that does not end is named, and what was opened before it is closed', async () => {
  const { onClose, close } = createClosers(0)
  const closed: string[] = []
  const queue = { stop: () => new Promise<void>(() => {}) }
  onClose(() => closed.push('pool'))
  onClose(() => queue.stop())
  await expect(close()).rejects.toThrow('not closed in time: () => queue.stop()')
  expect(closed).toEqual(['pool'])
})
