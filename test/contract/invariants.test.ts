import { expect, test } from 'vitest'
import { findFiles, readSource } from '../tools/source-files.ts'

const page = readSource('docs/invariants.md')
const defined = [...page.matchAll(/^\| ([IFS]\d+) \|/gm)].map(([, name = '']) => name)

/** The text of every test file, which includes every title. */
const tests = findFiles('test/**/*.ts').map(readSource).join('\n')
const cited = new Set([...tests.matchAll(/\b([IF]\d{1,2})\b/g)].map(([, name = '']) => name))

test('docs/invariants.md defines every number once, and every number that a test cites', () => {
  expect(new Set(defined).size).toBe(defined.length)
  const unknown = [...cited].filter((name) => !defined.includes(name))
  // F26 was never given.
  expect(unknown.filter((name) => name !== 'F26')).toEqual([])
})

test('every invariant and fault of docs/invariants.md is cited by a test', () => {
  const wanted = defined.filter((name) => !name.startsWith('S'))
  expect(wanted.filter((name) => !cited.has(name))).toEqual([])
})
