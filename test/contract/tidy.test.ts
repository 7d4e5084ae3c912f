/** Files and functions are short, and the product has no unused exports and files. */
import { basename } from 'node:path'
import { expect, test } from 'vitest'
import {
  commentsIn,
  findFiles,
  findSourceFiles,
  importsIn,
  readSource,
  type SyntaxNode,
  walkSource,
} from '../tools/source-files.ts'

const maxFileLines = 250
const maxFunctionLines = 70

const browserFiles = findFiles('web/**/*.ts').filter((file) => !/dist\/|\.d\.ts$/.test(file))
const product = [...findSourceFiles(), ...browserFiles]
const users = [
  ...product,
  ...findFiles('{test,bench,site,deploy,examples}/**/*.ts').filter(
    (file) => !/node_modules|\/dist\//.test(file),
  ),
]
const sources = new Map(users.map((file) => [file, readSource(file)]))
const textOf = (file: string) => sources.get(file) ?? ''

interface NamedNode extends SyntaxNode {
  readonly id?: { readonly name: string } | null
  readonly key?: { readonly name?: string }
}

/**
 * The names of the functions that are too long. The lines of an inner function do not count for the outer one, so a
 * factory may hold many short functions.
 */
function longFunctionsIn(source: string): string[] {
  const functions: { name: string; lines: number }[] = []
  walkSource(
    source,
    { name: '', outer: undefined as { lines: number } | undefined },
    (node, at) => {
      const { id, key } = node as NamedNode
      const name = id?.name ?? key?.name ?? at.name
      if (!/Function/.test(node.type)) return { name, outer: at.outer }
      const length = node.loc.end.line - node.loc.start.line + 1
      const found = { name, lines: length }
      functions.push(found)
      if (at.outer && length > 1) at.outer.lines -= length
      return { name, outer: found }
    },
  )
  return functions.filter(({ lines }) => lines > maxFunctionLines).map(({ name }) => name)
}

const isLong = (source: string) => source.trimEnd().split('\n').length > maxFileLines

test(`no file of src or web has more than ${maxFileLines} lines, no function more than ${maxFunctionLines}`, () => {
  const long = product.flatMap((file) => [
    ...(isLong(textOf(file)) ? [file] : []),
    ...longFunctionsIn(textOf(file)).map((name) => `${name} in ${file}`),
  ])
  expect(long).toEqual([])
})

test('a long function is seen, also within another one, whose own lines alone count', () => {
  const body = (lines: number) => 'step()\n'.repeat(lines)
  expect(isLong(body(maxFileLines))).toBe(false)
  expect(isLong(body(maxFileLines + 1))).toBe(true)
  expect(longFunctionsIn(`function a() {\n${body(68)}}`)).toEqual([])
  expect(longFunctionsIn(`function a() {\n${body(69)}}`)).toEqual(['a'])
  expect(longFunctionsIn(`const a = async () => {\n${body(69)}}`)).toEqual(['a'])
  const nested = `function a() {\n${body(40)}function b() {\n${body(40)}}\n}`
  expect(longFunctionsIn(nested)).toEqual([])
  expect(longFunctionsIn(`const a = { b() {\n${body(69)}} }`)).toEqual(['b'])
})

const declaredExport =
  /^export (?:declare |abstract |async )*(function\*?|const|let|class|interface|type) +(\w+)/gm

/**
 * The exports of a source that others must import. A type that its own file uses may be in the signature of another
 * export: then the package's declarations need its name.
 */
const exportsIn = (source: string) =>
  [...source.matchAll(declaredExport)].flatMap(([, kind = '', name = '']) => {
    const isType = kind === 'interface' || kind === 'type'
    const isUsedHere = (source.match(new RegExp(`\\b${name}\\b`, 'g')) ?? []).length > 1
    return isType && isUsedHere ? [] : [name]
  })

/** Files that are started or bundled by their path. */
const started = [
  'src/dev/demo-worker.ts',
  'src/limiter/build.ts',
  'src/sms-rules/build.ts',
  'web/demo/page.ts',
]
const manifest = readSource('package.json')
/** Used by other code than Postern's: a command, a process, an import of the package. */
const isEntry = (file: string) =>
  started.includes(file) ||
  manifest.includes(file) ||
  manifest.includes(file.replace(/^src\/(.*)\.ts$/, 'dist/$1.js'))

/** The files that import each file. */
const importers = Map.groupBy(
  users.flatMap((file) =>
    importsIn(file, textOf(file)).map(({ target }) => ({ target, importer: file })),
  ),
  ({ target }) => target,
)
const importersOf = (file: string) => (importers.get(file) ?? []).map(({ importer }) => importer)

test('every export is imported somewhere', () => {
  const dead = product
    .filter((file) => !isEntry(file))
    .flatMap((file) =>
      exportsIn(textOf(file))
        .filter((name) => {
          const use = new RegExp(`\\b${name}\\b|export (type )?\\* from '[^']*${basename(file)}'`)
          return !importersOf(file).some((user) => use.test(textOf(user)))
        })
        .map((name) => `${name} in ${file}`),
    )
  expect(exportsIn(textOf('src/base/batcher.ts')).length).toBeGreaterThan(0)
  expect(dead).toEqual([])
})

test('a type that only its own file uses may be exported, and one that nothing uses may not', () => {
  expect(exportsIn('export interface A {}\nexport function a(): A')).toEqual(['a'])
  expect(exportsIn('export interface A {}\nexport const b = 1')).toEqual(['A', 'b'])
})

test('every file of src and web is imported by the product, or something starts it', () => {
  const dead = product.filter(
    (file) => !isEntry(file) && !importersOf(file).some((user) => !user.startsWith('test/')),
  )
  expect(dead).toEqual([])
})

test('every module that the program of the package starts is there', () => {
  const modules = readSource('bin/postern.js').match(/(?<=start\(')[\w/]+/g) ?? []
  expect(modules.length).toBeGreaterThan(5)
  expect(modules.map((name) => `src/${name}.ts`).filter((file) => !sources.has(file))).toEqual([])
})

test('a file that a comment in src names is there', () => {
  const known = new Set(findSourceFiles().map((file) => basename(file)))
  const missing = findSourceFiles().flatMap((file) => {
    const named = commentsIn(textOf(file))
      .join('\n')
      .match(/(?<![.\w-])[a-z][a-z0-9-]*\.ts\b/g)
    return (named ?? []).filter((name) => !known.has(name)).map((name) => `${file} names ${name}`)
  })
  expect(known.size).toBeGreaterThan(100)
  expect(missing).toEqual([])
})
