import { expect, test } from 'vitest'
import { findFiles, readSource, titlesIn } from '../tools/source-files.ts'

const page = readSource('docs/invariants.md')
const defined = [...page.matchAll(/^\| ([IFS]\d+) \|/gm)].map(([, name = '']) => name)
const numbersIn = (texts: readonly string[]) =>
  new Set(texts.flatMap((text) => text.match(/\b[IF]\d{1,2}\b/g) ?? []))

test('docs/invariants.md defines every number once, and every number that a test cites', () => {
  expect(new Set(defined).size).toBe(defined.length)
  const cited = numbersIn(findFiles('test/**/*.ts').map(readSource))
  const unknown = [...cited].filter((name) => !defined.includes(name))
  // F26 was never given.
  expect(unknown.filter((name) => name !== 'F26')).toEqual([])
})

test('every invariant is in the title of a test, or a fault of test/faults proves it', () => {
  const titles = findFiles('test/**/*.test.ts').flatMap((file) => titlesIn(readSource(file)))
  expect(titles.length).toBeGreaterThan(2_500)
  const proofs = findFiles('test/faults/*.ts').flatMap(
    (file) => readSource(file).match(/^ *proves: '.*'/gm) ?? [],
  )
  const proved = numbersIn([...titles, ...proofs])
  const invariants = defined.filter((name) => name.startsWith('I'))
  expect(invariants.length).toBeGreaterThan(30)
  // Faults are compared with test/faults by its own test.
  expect(invariants.filter((name) => !proved.has(name))).toEqual([])
})

test('a number in a comment is no title', () => {
  const source =
    "// I4\ntest('one passes (I5)', () => { const a = 'I6' })\ntest.each(all)('%s (I7)', f)"
  expect([...numbersIn(titlesIn(source))]).toEqual(['I5', 'I7'])
})
