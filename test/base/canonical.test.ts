import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonical, canonicalRecord } from '../../src/base/canonical.ts'

test('canonical: parts that concatenate to the same text give different results (S2)', () => {
  expect(canonical(['1', '23'])).not.toBe(canonical(['12', '3']))
  expect(canonical(['', 'a'])).not.toBe(canonical(['a', '']))
  expect(canonical(['1:a'])).not.toBe(canonical(['1', 'a']))
  expect(canonical([])).not.toBe(canonical(['']))
})

test('canonical: two lists have one encoding only when they are equal (S2)', () => {
  // A small alphabet of the encoding's own characters, so that collisions would be found.
  const part = fc.string({ unit: fc.constantFrom('0', '1', '2', ':', 'a'), maxLength: 4 })
  const parts = fc.array(part, { maxLength: 4 })
  fc.assert(
    fc.property(parts, parts, (left, right) => {
      const isSame = JSON.stringify(left) === JSON.stringify(right)
      expect(canonical(left) === canonical(right)).toBe(isSame)
    }),
    { numRuns: 20_000 },
  )
})

test('canonicalRecord: the order of keys makes no difference, their values do (S2)', () => {
  expect(canonicalRecord({ a: '1', b: '2' })).toBe(canonicalRecord({ b: '2', a: '1' }))
  expect(canonicalRecord({ a: '1', b: '2' })).not.toBe(canonicalRecord({ a: '2', b: '1' }))
  expect(canonicalRecord({ a: '1' })).not.toBe(canonicalRecord({ a: '1', b: '' }))
  expect(canonicalRecord({ a: '1","b":"2' })).not.toBe(canonicalRecord({ a: '1', b: '2' }))
})

test('canonicalRecord: the order of keys makes no difference inside either', () => {
  const left = { params: { name: 'Ada', order: 7 }, to: 'x' }
  const right = { to: 'x', params: { order: 7, name: 'Ada' } }
  expect(canonicalRecord(left)).toBe(canonicalRecord(right))
})
