import { expect, test } from 'vitest'
import { readSource } from '../tools/source-files.ts'
import { faults } from './faults.ts'

/** The numbers of the list this folder answers to. */
const numbers = [...readSource('docs/invariants.md').matchAll(/^\| (F\d+) \|/gm)].map(
  ([, number = '']) => number,
)

test('every fault of docs/invariants.md is here once', () => {
  const ids = faults.map(({ id }) => id)
  expect(ids.filter((id) => id.startsWith('F')).sort()).toEqual(numbers.sort())
  expect(new Set(ids).size).toBe(ids.length)
})
