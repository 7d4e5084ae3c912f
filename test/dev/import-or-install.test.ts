import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { importOrInstall } from '../../src/dev/find-or-install.ts'

const newFolder = () => mkdtempSync(join(inject('runFolder'), 'install-'))

/** A package in a folder, so that npm needs no registry. */
function makePackage(name: string, answer: number): string {
  const folder = join(newFolder(), name)
  mkdirSync(folder)
  const manifest = { name, version: '1.0.0', exports: './index.js', type: 'module' }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  writeFileSync(join(folder, 'index.js'), `export const answer = ${answer}`)
  return `file:${folder}`
}

test('a package of Postern is imported, and nothing is installed', async () => {
  const folder = join(newFolder(), 'programs')
  const wanted = { name: 'yaml', range: 'file:/nowhere', about: 'YAML' }
  expect(await importOrInstall(wanted, folder)).toHaveProperty('parse')
  expect(existsSync(folder)).toBe(false)
})

test('another package is installed once; what an interrupted install left is not used', async () => {
  const folder = join(newFolder(), 'programs')
  mkdirSync(`${folder}.unfinished/node_modules/postern-probe`, { recursive: true })
  const wanted = { name: 'postern-probe', about: 'A probe' }
  const first = { ...wanted, range: makePackage('postern-probe', 1) }
  expect(await importOrInstall(first, folder)).toMatchObject({ answer: 1 })
  const second = { ...wanted, range: 'file:/nowhere' }
  expect(await importOrInstall(second, folder)).toMatchObject({ answer: 1 })
  expect(existsSync(`${folder}.unfinished`)).toBe(false)
})

test.each([
  ['npm fails', 'file:/nowhere.tgz'],
  ['npm succeeds without the package', 'file:/nowhere'],
])('%s → the reason, and no folder that a later start would use', async (_, range) => {
  const folder = join(newFolder(), 'programs')
  const wanted = { name: 'postern-probe-2', range, about: 'A probe' }
  await expect(importOrInstall(wanted, folder)).rejects.toThrow(
    /^npm could not install postern-probe-2 \(.{10,}/,
  )
  expect(existsSync(folder)).toBe(false)
})
