import { expect, test } from 'vitest'
import { createShortIds } from '../../src/base/ids.ts'
import { takeRandomBytes } from '../../src/base/random.ts'

test('takeRandomBytes: 5,000 draws of 12 bytes are all different, and stay as they were given', () => {
  const first = takeRandomBytes(12)
  const before = first.toString('hex')
  const draws = Array.from({ length: 5_000 }, () => takeRandomBytes(12).toString('hex'))
  expect(new Set([before, ...draws]).size).toBe(5_001)
  expect(first.toString('hex')).toBe(before)
  expect(draws.every((draw) => draw.length === 24)).toBe(true)
})

test('takeRandomBytes: draws share no byte with the one before', () => {
  // A draw that began within the former one would end as that one does, moved by some bytes.
  const draws = Array.from({ length: 1_000 }, () => takeRandomBytes(8).toString('hex'))
  for (const [index, draw] of draws.entries()) {
    const former = draws[index - 1]
    if (former) expect(former.includes(draw.slice(0, 8))).toBe(false)
  }
})

test('createShortIds: two sources share no id, and none of one comes twice', () => {
  const [one, other] = [createShortIds(), createShortIds()]
  const ids = Array.from({ length: 2_000 }, () => [one(), other()]).flat()
  expect(new Set(ids).size).toBe(4_000)
})
