/** The rules as other projects get them: packed, unpacked into an empty project, and used there without Postern. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { beforeAll, expect, inject, test } from 'vitest'
import { countries } from '../../src/sms-rules/index.ts'
import { environmentWithNode } from '../tools/node-versions.ts'
import { readSource, repositoryRoot } from '../tools/source-files.ts'

const run = promisify(execFile)
const [, file = '', source = '', printed = ''] =
  /```js (\S+)\n(.*?)```\n\n```text\n(.*?)```/s.exec(readSource('src/sms-rules/README.md')) ?? []

let project: string
let tarball: string
let installed: string

beforeAll(async () => {
  project = await mkdtemp(join(inject('runFolder'), 'consumer-'))
  const pack = ['run', '--silent', 'pack:sms-rules', '--', '--pack-destination', project]
  const { stdout } = await run('npm', pack, { cwd: repositoryRoot })
  tarball = join(project, stdout.trim().split('\n').at(-1) ?? '')
  // It asks for no package, so there is nothing that npm would install besides.
  installed = join(project, 'node_modules/postern-sms-rules')
  await mkdir(installed, { recursive: true })
  await run('tar', ['-xzf', tarball, '--strip-components=1', '-C', installed])
  await writeFile(join(project, 'package.json'), '{"type":"module"}')
}, 180_000)

test('it has at most 300 kB, asks for no package, and holds every country', async () => {
  expect((await stat(tarball)).size).toBeLessThan(300_000)
  const manifest = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'))
  expect(Object.keys(manifest).filter((key) => /dependencies/i.test(key))).toEqual([])
  const bundle = await readFile(join(installed, 'esm/index.js'), 'utf8')
  expect(bundle).not.toMatch(/\bnode:|\brequire\(|^import/m)
  expect(
    countries().filter(
      (country) =>
        !bundle.includes(`"country\\":\\"${country}`) && !bundle.includes(`"country":"${country}`),
    ),
  ).toEqual([])
})

test('publint and arethetypeswrong find nothing', async () => {
  const { messages } = await publint({ pkgDir: installed })
  expect(messages).toEqual([])
  const { buffer, byteOffset, byteLength } = await readFile(tarball)
  const bytes = new Uint8Array(buffer, byteOffset, byteLength)
  const analysis = await checkPackage(createPackageFromTarballData(bytes))
  expect(analysis.types && 'problems' in analysis ? analysis.problems : undefined).toEqual([])
})

test('the example of its README prints what stands below it', async () => {
  await writeFile(join(project, file), source)
  const { stdout } = await run(process.execPath, [file], { cwd: project })
  expect(stdout).toBe(printed)
})

test('with Node 20, import and require find the same', async () => {
  await writeFile(
    join(project, 'both.mjs'),
    `import { createRequire } from 'node:module'
import * as imported from 'postern-sms-rules'
const required = createRequire(import.meta.url)('postern-sms-rules')
const found = [imported, required].map(({ checkSms, countries, rulesOf }) => [
  countries().length, rulesOf('IN').name, checkSms({ country: 'IN', sender: 'ACME', text: '4711' }).map(({ rule }) => rule),
])
console.log(JSON.stringify(found))
`,
  )
  const env = { ...(await environmentWithNode(20)) }
  const { stdout } = await run('node', ['both.mjs'], { cwd: project, env })
  const seen = [countries().length, 'India', ['sender.alphanumeric', 'template', 'textForm.brand']]
  expect(JSON.parse(stdout)).toEqual([seen, seen])
})

test('its types hold under strict, as module and as CommonJS, without types of Node', async () => {
  const use = `import { checkSms, type CountryRules, type Finding, rulesOf } from 'postern-sms-rules'
export const found: Finding[] = checkSms({ country: 'IN', sender: 'ACME', registered: { sender: true } })
export const rules: CountryRules | undefined = rulesOf('IN')
export const names = rules?.facts.flatMap((fact) => (fact.about === 'register' ? [fact.url] : []))
// @ts-expect-error: no country
checkSms({ sender: 'ACME' })
`
  for (const name of ['use.mts', 'use.cts']) await writeFile(join(project, name), use)
  const strict = ['--noEmit', '--strict', '--target', 'es2024', '--module', 'nodenext']
  const tsc = join(repositoryRoot, 'node_modules', '.bin', 'tsc')
  const { stdout } = await run(tsc, [...strict, '--types', '', 'use.mts', 'use.cts'], {
    cwd: project,
  })
  expect(stdout).toBe('')
})
