import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { languages } from '../../src/i18n/languages.ts'
import { ownProperties } from '../../web/build.ts'
import { repositoryRoot } from '../tools/source-files.ts'
import { scriptPath } from './field-page.ts'

const page = readFileSync(`${repositoryRoot}docs/code-field.md`, 'utf8')

test('docs/code-field.md names the file, its size, and the hash that `npm run browser` writes there', () => {
  const bytes = readFileSync(`${repositoryRoot}web/dist/postern-code.js`)
  expect(page).toContain(`https://codes.example${scriptPath}"`)
  const hash = createHash('sha384').update(bytes).digest('base64')
  expect(page).toContain(`integrity="sha384-${hash}"`)
  const [, promisedKb] = /One file of (\d+) kB/.exec(page) ?? []
  expect(gzipSync(bytes, { level: 9 }).length / 1_000).toBeLessThan(Number(promisedKb))
  expect(Number(promisedKb)).toBeLessThanOrEqual(16)
})

test('the file has texts of English alone, without those that come after an answer of the service', () => {
  const script = readFileSync(`${repositoryRoot}web/dist/postern-code.js`, 'utf8')
  for (const [language, { field }] of Object.entries(languages)) {
    for (const name of ['enterCode', 'locked', 'unavailable'] as const) {
      expect({ language, name, has: script.includes(field[name]) }).toEqual({
        language,
        name,
        has: language === 'en' && name !== 'locked',
      })
    }
  }
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

test('the build shortens each variable of the style to another name', () => {
  const style = readFileSync(`${repositoryRoot}web/style.ts`, 'utf8')
  const names = [...new Set(style.match(/--_[\w-]+/g))]
  expect(names.length).toBeGreaterThan(9)
  expect(new Set(names.map((name) => name.slice(0, 5))).size).toBe(names.length)
})

test('colours come from web/brand, and docs/code-field.md lists them', () => {
  const brand = readFileSync(`${repositoryRoot}web/brand/brand.css`, 'utf8')
  const style = readFileSync(`${repositoryRoot}web/style.ts`, 'utf8')
  const ofBrand = {
    accent: 'accent',
    'on-accent': 'on-accent',
    text: 'ink',
    muted: 'muted',
    surface: 'card',
    border: 'edge',
    wrong: 'bad',
    right: 'good',
  }
  for (const [name, brandName] of Object.entries(ofBrand)) {
    const [, pair = ''] = new RegExp(`--${brandName}: (light-dark\\(.*\\));`).exec(brand) ?? []
    expect(style).toContain(`--postern-${name}, ${pair})`)
    const [light, dark] = pair.match(/#\w+/g) ?? []
    expect(page).toMatch(
      new RegExp(`\\| \`--postern-${name}\` \\| .* \\| \`${light}\`, \`${dark}\` \\|`),
    )
  }
})

test('the names that the build shortens are of no page, no answer of the service, no text and no browser', () => {
  const names = ownProperties.split(' ')
  expect(names.length).toBeGreaterThan(20)
  const read = (file: string) => readFileSync(`${repositoryRoot}${file}`, 'utf8')
  const [dom = ''] = globSync('node_modules/@typescript/*/lib/lib.dom.d.ts', {
    cwd: repositoryRoot,
  })
  const ofOthers = {
    page,
    ...Object.fromEntries(
      ['client', 'saved-code', 'proof-of-work'].map((file) => [file, read(`web/${file}.ts`)]),
    ),
    texts: Object.keys(languages.en.field).join(),
    dom: (read(dom).match(/^ +(readonly )?\w+(?=[?(:])/gm) ?? []).join(),
  }
  expect(ofOthers.dom).toContain('isComposing')
  for (const [where, text] of Object.entries(ofOthers)) {
    const words = new Set(text.match(/\w+/g))
    expect({ where, names: names.filter((name) => words.has(name)) }).toEqual({ where, names: [] })
  }
})
