import { basename } from 'node:path'
import { expect, test } from 'vitest'
import { findSourceFiles, readSource } from '../tools/source-files.ts'

test('a file that a comment in src names is there', () => {
  const files = findSourceFiles()
  const known = new Set(files.map((file) => basename(file)))
  const missing = files.flatMap((file) => {
    const comments = readSource(file).match(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm) ?? []
    const named = comments.join('\n').match(/(?<![.\w-])[a-z][a-z0-9-]*\.ts\b/g) ?? []
    return named.filter((name) => !known.has(name)).map((name) => `${file} names ${name}`)
  })
  expect(known.size).toBeGreaterThan(100)
  expect(missing).toEqual([])
})
