import { expect, test } from 'vitest'
import { faults } from './faults.ts'

/** The numbers of the list this folder answers to. F26 was never given. */
const numbers = Array.from({ length: 27 }, (_, index) => `F${index + 1}`)
  .filter((id) => id !== 'F26')
  .concat('F33')

test('every fault of the list is here once', () => {
  const ids = faults.map(({ id }) => id)
  expect(ids.filter((id) => id.startsWith('F')).sort()).toEqual(numbers.sort())
  expect(new Set(ids).size).toBe(ids.length)
})
