import { expect, test } from 'vitest'
import { readSource } from '../tools/source-files.ts'
import { faults } from './faults.ts'

/** The numbers of the list that this folder proves. */
const numbers = [...readSource('docs/invariants.md').matchAll(/^\| (F\d+) \|/gm)].map(
  ([, number = '']) => number,
)

/** Not a fault of a fleet under load: one process and its servers show it. */
const elsewhere: Readonly<Record<string, string>> = {
  F36: 'test/storage/pooler.slow.test.ts',
  F38: 'test/flow/page-flood.slow.test.ts',
}

test('every fault of docs/invariants.md is here once', () => {
  const ids = faults.map(({ id }) => id)
  const all = [...ids.filter((id) => id.startsWith('F')), ...Object.keys(elsewhere)]
  expect(all.sort()).toEqual(numbers.sort())
  expect(new Set(ids).size).toBe(ids.length)
})

test.each(Object.entries(elsewhere))('%s stands in a title of %s', (number, file) => {
  expect(readSource(file)).toMatch(new RegExp(`^ *(test\\()?['\`].*\\b${number}\\b`, 'm'))
})
