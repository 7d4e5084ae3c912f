import { basename } from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadScript } from '../../src/base/redis-script.ts'
import { terms } from '../../src/limiter/policy/terms.ts'
import { findFiles, findSourceFiles, readSource } from '../tools/source-files.ts'

/** The promises of `lua/README.md`, kept by every script. */
function problemsOf(file: string, source: string): string[] {
  const problems: string[] = []
  const lines = source.trimEnd().split('\n')
  const headerLength = lines.findIndex((line) => !line.startsWith('--'))
  const header = lines.slice(0, headerLength).join('\n')
  const body = lines.slice(headerLength).join('\n').replace(/--.*$/gm, '')

  const inName = /-(\d+|N)\.lua$/.exec(file)?.[1]
  const numbers = [...body.matchAll(/KEYS\[(\d+)\]/g)].map(([, n]) => Number(n))
  // Any use of KEYS other than KEYS[1] with its number: a loop, #KEYS, unpack(KEYS).
  const isOpen = /\bKEYS\b(?!\[\d+\])/.test(body)
  const inBody = isOpen ? 'N' : String(Math.max(0, ...numbers))
  if (inName !== inBody) problems.push(`takes ${inBody} keys, and its name says ${inName}`)

  if (!/^-- \S/.test(header)) problems.push('does not open with its purpose')
  if (!/^-- returns\b/im.test(header)) problems.push('header does not name what it returns')
  for (const array of ['KEYS', 'ARGV']) {
    const isUsed = new RegExp(`\\b${array}\\b`).test(body)
    const isNamed = new RegExp(`^-- ${array}\\b`, 'm').test(header)
    if (isUsed && !isNamed) problems.push(`header does not name its ${array}`)
  }
  for (const n of new Set(numbers)) {
    // One line may stand for several, as in KEYS[1…]. A single key needs no number.
    const named = new RegExp(`^-- KEYS(\\[(${n}\\b|\\d+ ?(…|\\.\\.))| +\\S)`, 'm')
    if (!isOpen && !named.test(header)) {
      problems.push(`header does not name KEYS[${n}]`)
    }
  }
  if (lines.length > 200) problems.push(`has ${lines.length} lines, and 200 is the limit`)
  return problems
}

const files = findFiles('lua/**/*.lua')
/** A file without a number of keys is a part: scripts include it. */
const scripts = files.filter((file) => /-(\d+|N)\.lua$/.test(file))
const parts = files.filter((file) => !scripts.includes(file))
const includedBy = (script: string) =>
  [...readSource(script).matchAll(/^-- include (\S+)$/gm)].map(([, file]) => `lua/${file}`)

test('there are scripts, and all lie directly in lua/', () => {
  expect(scripts.length).toBeGreaterThan(0)
  expect(files.filter((file) => file.split('/').length !== 2)).toEqual([])
})

test('every part is included by a script, opens with its purpose, knows nothing of KEYS and ARGV, and is no longer than one', () => {
  expect([...new Set(scripts.flatMap(includedBy))].sort()).toEqual(parts)
  for (const file of parts) {
    const source = readSource(file)
    expect(problemsOf(file.replace('.lua', '-0.lua'), source), file).toEqual([])
    expect(
      loadScript(basename(scripts.find((one) => includedBy(one).includes(file)) ?? '', '.lua'))
        .source,
    ).toContain(source)
  }
})

describe.each(scripts)('%s', (file) => {
  test('the number in its name is the number of its keys, and its header names keys, arguments and answers', () => {
    expect(problemsOf(file, readSource(file))).toEqual([])
  })

  test('exactly one TypeScript file loads it', () => {
    const name = file.slice('lua/'.length, -'.lua'.length)
    const loaders = findSourceFiles().filter((source) =>
      readSource(source).includes(`loadScript('${name}')`),
    )
    expect(loaders).toHaveLength(1)
  })
})

test('every script that is loaded exists', () => {
  const loaded = findSourceFiles().flatMap((source) =>
    [...readSource(source).matchAll(/loadScript\('([^']+)'\)/g)].map(
      ([, name]) => `lua/${name}.lua`,
    ),
  )
  expect(loaded.filter((file) => !scripts.includes(file))).toEqual([])
})

test('every kind of rule has a function of its name in Lua', () => {
  const source = readSource('lua/kinds.lua')
  const named = [...source.matchAll(/^(?:function )?kinds\.(\w+)/gm)].map(([, name]) => name)
  expect(named.sort()).toEqual(Object.keys(terms).sort())
})

test('a wrong number, a missing header and a script that is too long are seen', () => {
  const header = '-- Does it.\n-- KEYS[1]  a\n-- ARGV[1]  b\n-- returns  c\n'
  const body = "return redis.call('SET', KEYS[1], ARGV[1])\n"
  expect(problemsOf('lua/a-1.lua', header + body)).toEqual([])
  expect(problemsOf('lua/a-2.lua', header + body)).toHaveLength(1)
  expect(problemsOf('lua/a.lua', header + body)).toHaveLength(1)
  expect(problemsOf('lua/a-N.lua', `${header}for i = 1, #KEYS do end\n`)).toEqual([])
  expect(problemsOf('lua/a-1.lua', body).length).toBeGreaterThanOrEqual(3)
  expect(problemsOf('lua/a-2.lua', `${header}return KEYS[2]\n`)).toEqual([
    'header does not name KEYS[2]',
  ])
  expect(problemsOf('lua/a-1.lua', header + body + '\n'.repeat(200) + body)).toHaveLength(1)
})
