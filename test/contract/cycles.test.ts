import { expect, test } from 'vitest'
import { findFiles, findSourceFiles, importsIn, readSource } from '../tools/source-files.ts'

/** The files of one cycle in the order of their imports; undefined without a cycle. */
function findCycle(imports: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const path: string[] = []
  const done = new Set<string>()
  const visit = (file: string): string[] | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file]
    if (done.has(file)) return undefined
    path.push(file)
    for (const target of imports.get(file) ?? []) {
      const cycle = visit(target)
      if (cycle) return cycle
    }
    path.pop()
    done.add(file)
    return undefined
  }
  for (const file of imports.keys()) {
    const cycle = visit(file)
    if (cycle) return cycle
  }
  return undefined
}

test('no file imports itself by way of others, not even for a type', () => {
  const imports = new Map(
    findSourceFiles().map((file) => [
      file,
      importsIn(file, readSource(file)).map(({ target }) => target),
    ]),
  )
  expect([...imports.values()].flat().length).toBeGreaterThan(0)
  expect(findCycle(imports)).toBeUndefined()
})

test('every imported file of Postern exists', () => {
  const sources = findSourceFiles()
  const files = new Set([...sources, ...findFiles('{web/**/*.ts,src/i18n/*.json}')])
  const missing = sources.flatMap((file) =>
    importsIn(file, readSource(file))
      .filter(({ target }) => !files.has(target) && !target.startsWith('src/storage/generated/'))
      .map(({ target }) => `${file} imports ${target}`),
  )
  expect(missing).toEqual([])
})

test('a cycle of three is found, wherever the search begins, and a diamond is none', () => {
  const cycle = { a: ['b'], b: ['c'], c: ['a'], d: ['a'] }
  expect(findCycle(new Map(Object.entries(cycle)))).toEqual(['a', 'b', 'c', 'a'])
  const diamond = { a: ['b', 'c'], b: ['d'], c: ['d'], d: [] }
  expect(findCycle(new Map(Object.entries(diamond)))).toBeUndefined()
})
