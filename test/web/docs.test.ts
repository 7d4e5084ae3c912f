import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { repositoryRoot } from '../tools/source-files.ts'
import { scriptPath } from './field-page.ts'

const page = readFileSync(`${repositoryRoot}docs/code-field.md`, 'utf8')

test('docs/code-field.md names the file, its size, and the hash that `npm run browser` writes there', () => {
  const bytes = readFileSync(`${repositoryRoot}web/dist/postern-code.js`)
  expect(page).toContain(`https://codes.example${scriptPath}"`)
  const hash = createHash('sha384').update(bytes).digest('base64')
  expect(page).toContain(`integrity="sha384-${hash}"`)
  const [, promisedKb] = /One file of (\d+) kB/.exec(page) ?? []
  expect(gzipSync(bytes, { level: 9 }).length).toBeLessThanOrEqual(Number(promisedKb) * 1_000)
  expect(Number(promisedKb)).toBeLessThanOrEqual(15)
})

test('docs/code-field.md says how large the file is, as it travels', () => {
  const bytes = readFileSync(`${repositoryRoot}web/dist/postern-code.js`)
  const [, told] = /One file of (\d+) kB without dependencies/.exec(page) ?? []
  expect(Math.round(gzipSync(bytes).length / 1_000)).toBe(Number(told))
})

test('docs/code-field.md names every attribute and every variable', () => {
  const settings = readFileSync(`${repositoryRoot}web/settings.ts`, 'utf8')
  const names = [...settings.matchAll(/ttribute\('([a-z-]+)'\)/g)].map(([, name]) => name)
  expect(names.length).toBeGreaterThan(7)
  for (const name of names) expect(page).toContain(`\`${name}\``)
  const style = readFileSync(`${repositoryRoot}web/style.ts`, 'utf8')
  const variables = [...style.matchAll(/var\(--postern(-[a-z-]+)/g)].map(([, name]) => name)
  expect(variables.length).toBeGreaterThan(10)
  for (const name of variables) {
    expect(page.includes(`\`${name}\``) || page.includes(`--postern${name}`), name).toBe(true)
  }
})
