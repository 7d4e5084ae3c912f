/** `plugins:` of the policy file and of a host: what is loaded, and the messages about what cannot be loaded. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import express from 'express'
import { expect, inject, test } from 'vitest'
import { pluginIn } from '../../src/http/plugin-module.ts'
import { openRouters, type Plugin } from '../../src/http/plugins.ts'
import { createExtensions, loadConfig } from '../../src/main/load-config.ts'
import { repositoryRoot } from '../tools/source-files.ts'

const env = {
  DATABASE_URL: 'postgresql://localhost',
  REDIS_URL: 'redis://localhost',
  SECRET: 'a secret of at least thirty-two bytes',
}
const zod = JSON.stringify(import.meta.resolve('zod'))

/** A provider kind as in a file of another author. */
const kind = (name: string, more = '') => `{
  kind: '${name}', channels: ['sms'], settings: z.strictObject({ url: z.string() }),
  create: (name, settings, deps) => ({ name, kind: '${name}', channels: ['sms'], slots: 1,
    async send() { return { kind: 'accepted' } }, async close() {} }),
  ${more} }`
const file = (exported: string, before = '') =>
  `import { z } from ${zod}\n${before}\nexport default ${exported}\n`

/** A folder with a policy file that names these plugins, and with these files. */
function folderOf(files: Readonly<Record<string, string>>, plugins: readonly string[], more = '') {
  const folder = mkdtempSync(join(inject('runFolder'), 'plugins-'))
  const all = {
    ...files,
    'postern.yaml': `plugins: ${JSON.stringify(plugins)}
policies: { captcha: [], notice: [], check: [] }
templates: ${repositoryRoot}templates
${more || 'providers: {}'}
routes: {}
`,
  }
  for (const [name, text] of Object.entries(all)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return folder
}

async function load(...given: Parameters<typeof folderOf>) {
  const policy = join(folderOf(...given), 'postern.yaml')
  const loaded = await loadConfig(env, policy)
  return loaded.ok
    ? { config: loaded.config, problems: [] }
    : { config: undefined, problems: loaded.problems.map((problem) => problem.split(/\.yaml:/)[1]) }
}

const acme = 'providers: { phone: { kind: acme, url: "x:y" } }'

test('a file beside the policy file, from any current folder: a kind, a plugin, a function, one that waits', async () => {
  const shapes = [
    kind('acme'),
    `{ name: 'carriers', providerKinds: { acme: ${kind('acme')} } }`,
    `() => ({ providerKinds: { acme: ${kind('acme')} } })`,
    `async () => ({ name: 'late', providerKinds: { acme: ${kind('acme')} } })`,
  ]
  const names = []
  for (const shape of shapes) {
    const { config, problems } = await load({ 'acme.js': file(shape) }, ['./acme.js'], acme)
    expect(problems).toEqual([])
    const { kind, settings } = config?.providers.get('phone') ?? {}
    expect([kind?.kind, settings]).toEqual(['acme', { url: 'x:y' }])
    names.push(...(config?.plugins.map(({ name }) => name) ?? []))
  }
  expect(names).toEqual(['carriers', './acme.js', 'late'])
})

test('packages that are installed beside the policy file: one of ECMAScript, one of CommonJS', async () => {
  const { config, problems } = await load(
    {
      'node_modules/esm-carrier/package.json':
        '{ "name": "esm-carrier", "type": "module", "exports": { "default": "./it.js" } }',
      'node_modules/esm-carrier/it.js': file(kind('acme')),
      'node_modules/@acme/cjs/package.json': '{ "name": "@acme/cjs", "main": "it.cjs" }',
      'node_modules/@acme/cjs/it.cjs': `const { z } = require(new URL(${zod}))
module.exports = { name: 'of-cjs', providerKinds: { other: ${kind('other')} } }`.replace(
        /require\(new URL\((.*)\)\)/,
        'require(require("node:url").fileURLToPath($1))',
      ),
    },
    ['esm-carrier', '@acme/cjs'],
    acme,
  )
  expect(problems).toEqual([])
  expect(config?.plugins.map(({ name }) => name)).toEqual(['of-cjs'])
})

test('a function is called once per process, also when the file is read again', async () => {
  const count = 'globalThis.posternTestCalls = (globalThis.posternTestCalls ?? 0) + 1'
  const folder = folderOf(
    { 'p.js': file(`() => { ${count}; return { providerKinds: { acme: ${kind('acme')} } } }`) },
    ['./p.js'],
    acme,
  )
  for (const _ of [1, 2]) {
    expect(await loadConfig(env, join(folder, 'postern.yaml'))).toMatchObject({ ok: true })
  }
  expect((globalThis as { posternTestCalls?: number }).posternTestCalls).toBe(1)
})

test.each<[string, Record<string, string>, string[], RegExp[]]>([
  [
    'no such file',
    {},
    ['./gone.js'],
    [/^1: plugins\.0: plugin \.\/gone\.js: cannot be loaded: .*plugins-[^/]+\/gone\.js/],
  ],
  [
    'no such package',
    {},
    ['postern-no-such'],
    [/plugin postern-no-such: cannot be loaded: .*postern-no-such/],
  ],
  [
    'a name of a file without ./',
    { 'a.js': file(kind('acme')) },
    ['a.js'],
    [/plugin a\.js: cannot be loaded/],
  ],
  [
    'what is no JavaScript',
    { 'a.js': 'this is nothing' },
    ['./a.js'],
    [/plugin \.\/a\.js: cannot be loaded: /],
  ],
  [
    'one that throws at import',
    { 'a.js': 'throw new Error("no licence")' },
    ['./a.js'],
    [/plugin \.\/a\.js: cannot be loaded: no licence$/],
  ],
  [
    'one that throws a word',
    { 'a.js': 'throw "no licence"' },
    ['./a.js'],
    [/plugin \.\/a\.js: cannot be loaded: no licence$/],
  ],
  [
    'no default export',
    { 'a.js': 'export const acme = {}' },
    ['./a.js'],
    [/plugin \.\/a\.js: is neither a plugin nor a provider kind/],
  ],
  [
    'a number',
    { 'a.js': 'export default 7' },
    ['./a.js'],
    [/is neither a plugin nor a provider kind$/],
  ],
  [
    'a function that throws',
    { 'a.js': 'export default () => { throw new Error("no licence") }' },
    ['./a.js'],
    [/plugin \.\/a\.js: no licence$/],
  ],
  [
    'a function that rejects',
    { 'a.js': 'export default async () => { throw new Error("no licence") }' },
    ['./a.js'],
    [/plugin \.\/a\.js: no licence$/],
  ],
  [
    'a plugin of nothing',
    { 'a.js': 'export default { name: "empty", providerKind: {} }' },
    ['./a.js'],
    [/plugin empty: has neither providerKinds nor router$/],
  ],
  [
    'a name that is none',
    { 'a.js': 'export default { name: "a\\nb", router() {} }' },
    ['./a.js'],
    [/plugin \.\/a\.js: its name is not/],
  ],
  [
    'a router that is none',
    { 'a.js': 'export default { name: "r", router: {} }' },
    ['./a.js'],
    [/plugin r: router is not a function$/],
  ],
  [
    'policies that are none',
    { 'a.js': 'export default { name: "p", policies: [], router() {} }' },
    ['./a.js'],
    [/plugin p: policies is not an object$/],
  ],
  [
    'a policy of a name that the file has',
    { 'a.js': 'export default { name: "p", policies: { captcha: [] }, router() {} }' },
    ['./a.js'],
    [/^2: policies\.captcha: is the name of a policy of a plugin/],
  ],
  [
    'a kind of a name that is taken',
    { 'a.js': file(kind('smtp')) },
    ['./a.js'],
    [/plugin \.\/a\.js: there is a provider kind "smtp" already$/],
  ],
  [
    'two kinds of one name',
    { 'a.js': file(kind('acme')), 'b.js': file(kind('acme')) },
    ['./a.js', './b.js'],
    [/^1: plugins\.1: plugin \.\/b\.js: there is a provider kind "acme" already$/],
  ],
  [
    'two plugins of one name',
    {
      'a.js': 'export default { name: "acme", router() {} }',
      'b.js': 'export default { name: "acme", router() {} }',
    },
    ['./a.js', './b.js'],
    [/^1: plugins\.1: plugin acme: there is a plugin of this name already$/],
  ],
  [
    'a kind under another name',
    { 'a.js': file(`{ name: 'x', providerKinds: { other: ${kind('acme')} } }`) },
    ['./a.js'],
    [/plugin x: providerKinds\.other: has the kind "acme"; both names must be the same$/],
  ],
  [
    'a kind of no channel',
    { 'a.js': file(`{ ...${kind('acme')}, channels: [] }`) },
    ['./a.js'],
    [/is not a provider kind: channels: /],
  ],
  [
    'a kind of an unknown channel',
    { 'a.js': file(`{ ...${kind('acme')}, channels: ['pigeon'] }`) },
    ['./a.js'],
    [/is not a provider kind: channels: 0: /],
  ],
  [
    'a kind with a name that is none',
    { 'a.js': file(`{ ...${kind('acme')}, kind: 'A c' }`) },
    ['./a.js'],
    [/is not a provider kind: kind: must be a short lower-case name$/],
  ],
  [
    'settings that are no schema',
    { 'a.js': file(`{ ...${kind('acme')}, settings: { url: 'string' } }`) },
    ['./a.js'],
    [/is not a provider kind: settings: must be a zod schema$/],
  ],
  ['no list', {}, 'x' as never, [/^1: plugins: /]],
])(
  '%s → the problem, with its line and the name of the plugin',
  async (_, files, plugins, expected) => {
    const { problems } = await load(files, plugins)
    for (const pattern of expected) expect(problems).toContainEqual(expect.stringMatching(pattern))
    expect(problems).toHaveLength(expected.length)
  },
)

test.each([
  ['throws', 'z.custom(() => { throw new Error("inside") })', /inside/],
  ['waits', 'z.string().or(z.any()).refine(async () => true)', /Promise/],
  ['answers nothing', '{ safeParse() {} }', /./],
])(
  'settings whose schema %s → a problem of the provider, not a crash',
  async (_, schema, message) => {
    const text = file(`{ ...${kind('acme')}, settings: ${schema} }`)
    const { problems } = await load({ 'a.js': text }, ['./a.js'], acme)
    expect(problems).toEqual([
      expect.stringMatching(
        /^4: providers\.phone\.kind: the settings of this kind cannot be checked: /,
      ),
    ])
    expect(problems[0]).toMatch(message)
  },
)

test("an entry's settings are checked by the plugin's schema, and routes by the plugin's channels", async () => {
  const { problems } = await load(
    { 'a.js': file(kind('acme')) },
    ['./a.js'],
    'providers: { phone: { kind: acme, url: 7, colour: red, pace: never } }',
  )
  expect(problems).toEqual([
    expect.stringMatching(/^4: providers\.phone\.pace: /),
    expect.stringMatching(/^4: providers\.phone\.url: /),
    expect.stringMatching(/^4: providers\.phone\.colour: unknown key/),
  ])
})

test('a plugin that never ends to load, or to make its router → its name, in time', async () => {
  const extensions = createExtensions({ withinMs: 50 })
  const folder = folderOf({ 'a.js': 'await new Promise(() => {})' }, [])
  await expect(extensions.addModule('./a.js', join(folder, 'postern.yaml'))).rejects.toThrow(
    'plugin ./a.js: was not loaded within 0.05 s',
  )
  const never = () => new Promise<never>(() => {})
  await expect(extensions.addOfHost({ plugins: [never] })).rejects.toThrow(
    'plugin plugins[0]: its function did not return within 0.05 s',
  )
  await expect(openRouters([{ name: 'slow', router: never }], {} as never, 50)).rejects.toThrow(
    'plugin slow: router did not return within 0.05 s',
  )
})

test('routers: in the order of the plugins, also those that wait; one that throws or returns none is named', async () => {
  const open = (...plugins: Plugin[]) => openRouters(plugins, {} as never)
  const router = express.Router()
  const kinds = { name: 'kinds', providerKinds: {} }
  const late = { name: 'late', router: async () => router }
  expect(await open(kinds, late, { name: 'b', router: () => router })).toEqual([
    { name: 'late', router },
    { name: 'b', router },
  ])
  const failing = { name: 'f', router: () => Promise.reject(new Error('no port')) }
  await expect(open(failing)).rejects.toThrow('plugin f: no port')
  const none = { name: 'n', router: () => ({}) as never }
  await expect(open(none)).rejects.toThrow('plugin n: router returned no express.Router')
})

test('what a host hands over in the wrong shape → an Error that names it', async () => {
  const add = (given: unknown) => createExtensions().addOfHost(given as never)
  await expect(add({ plugins: {} })).rejects.toThrow('plugins is not a list')
  await expect(add({ plugins: null })).rejects.toThrow('plugins is not a list')
  await expect(add({ providerKinds: [] })).rejects.toThrow('providerKinds is not an object')
  const twice = { name: 'twice', providerKinds: {} }
  await expect(add({ plugins: [twice, () => twice] })).rejects.toThrow(
    'plugin twice: there is a plugin of this name already',
  )
})

test('pluginIn: an error of a plugin file or of any file of its package is its; another error is of none', async () => {
  const thrower = 'export const fail = () => new Error("inside")'
  const folder = folderOf(
    {
      'a.js': `${thrower}\nexport default { name: 'a', providerKinds: {}, fail }`,
      'other.js': thrower,
      'node_modules/@acme/carrier/package.json': '{ "type": "module", "exports": "./it.js" }',
      'node_modules/@acme/carrier/it.js': 'export default { providerKinds: {} }',
      'node_modules/@acme/carrier/lib/deep.js': thrower,
      'node_modules/@acme/other/deep.js': thrower,
    },
    [],
  )
  const extensions = createExtensions()
  for (const name of ['./a.js', '@acme/carrier']) {
    await extensions.addModule(name, join(folder, 'postern.yaml'))
  }
  const ofFile = async (file: string) => pluginIn((await import(join(folder, file))).fail())
  expect(await ofFile('a.js')).toBe('./a.js')
  expect(await ofFile('node_modules/@acme/carrier/lib/deep.js')).toBe('@acme/carrier')
  expect(await ofFile('other.js')).toBeUndefined()
  expect(await ofFile('node_modules/@acme/other/deep.js')).toBeUndefined()
  expect(pluginIn('a word')).toBeUndefined()
})
