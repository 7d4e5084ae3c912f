import { join } from 'node:path'
import { expect, test } from 'vitest'
import { commandLine, programFor } from '../../src/base/command-line.ts'
import { commentsIn, findSourceFiles, readSource, repositoryRoot } from '../tools/source-files.ts'

test('in a clone, a message names the npm script; test/contract/package.slow.test.ts has the package', () => {
  expect(commandLine('migrate')).toBe('npm run migrate')
  expect(commandLine('api')).toBe('npm run start:api')
  expect(commandLine('keys', 'create --name web')).toBe('npm run keys -- create --name web')
})

test('no other file of src writes the name of a script into a message, because a package has no scripts', () => {
  const scripts = /npm run (?:-s )?(keys|migrate|policy|doctor|demo|start:\w+)/
  const naming = findSourceFiles().filter((file) => {
    const source = readSource(file)
    const code = commentsIn(source).reduce((rest, comment) => rest.replace(comment, ''), source)
    return scripts.test(code)
  })
  expect(naming).toEqual([])
})

test('of the package: postern, or npx postern where it is not on the PATH or npm put it there', () => {
  const bin = join(repositoryRoot, 'bin')
  expect(programFor({ PATH: `/usr/bin:${bin}` })).toBe('postern')
  expect(programFor({ PATH: '/usr/bin:/bin' })).toBe('npx postern')
  expect(programFor({})).toBe('npx postern')
  for (const npm_command of ['exec', 'run-script'])
    expect(programFor({ PATH: bin, npm_command })).toBe('npx postern')
})
