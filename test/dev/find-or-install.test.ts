import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
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

/** In place of apt-get: fails as the real one does while another runs, and installs a program of the package's name. */
const aptGet = `#!/bin/sh
folder=$(dirname "$0")
mkdir "$folder/busy" 2>/dev/null || { echo 'E: Could not get lock' >&2; exit 100; }
sleep 0.1
for last; do :; done
case " $* " in
  *' no-such-package '*) rmdir "$folder/busy"; echo "E: Unable to locate package $last" >&2; exit 100 ;;
  *' install '*) printf '#!/bin/sh' >"$folder/$last"; chmod 755 "$folder/$last" ;;
esac
rmdir "$folder/busy"
`

const install = (folder: string, name: string) => {
  const code = `import { findOrInstall } from './src/dev/find-or-install.ts'
    console.log(findOrInstall(['${name}'], '${name}', 'install ${name}'))`
  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}` }
  const run = promisify(execFile)(process.execPath, ['--input-type=module', '-e', code], { env })
  return run.then(({ stdout }) => stdout.trim())
}

test.skipIf(process.getuid?.() !== 0)(
  'programs missed by four processes at once → each is installed, an unknown one has the reason (root only: it installs)',
  async () => {
    const folder = newFolder()
    writeFileSync(join(folder, 'apt-get'), aptGet, { mode: 0o755 })
    const names = ['probe-a', 'probe-b', 'probe-c']
    const [wrong, ...found] = await Promise.allSettled(
      ['no-such-package', ...names].map((name) => install(folder, name)),
    )
    expect(found).toMatchObject(names.map((name) => ({ value: join(folder, name) })))
    expect(wrong).toMatchObject({
      reason: { stderr: expect.stringContaining('Unable to locate package no-such-package') },
    })
  },
)
