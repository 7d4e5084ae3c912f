/**
 * docs/policy-file.md compared with the schema of the policy file, in both directions. test/docs runs its examples.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { formatDuration } from '../../src/base/durations.ts'
import { type PolicyFileResult, parsePolicyFile } from '../../src/config/policy-file.ts'
import { policyFileSchema } from '../../src/config/policy-schema.ts'
import { ruleSchema } from '../../src/limiter/policy/parse.ts'
import { createSectionChecks } from '../../src/main/load-config.ts'
import { ownKinds } from '../../src/providers/kinds.ts'
import { fields } from '../../src/rules/key-fields.ts'
import { loadTemplates } from '../tools/load-templates.ts'

const pathOf = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const read = (path: string) => readFileSync(pathOf(path), 'utf8')
const docs = read('docs/policy-file.md')

/** Variables of the environment that the examples and shipped files read. */
const env = { SMTP_URL: 'smtp://mail.example.com', SMS_SECRET: 'a secret of the carrier' }

const parse = (text: string, path = pathOf('postern.yaml')) =>
  parsePolicyFile(text, path, env, createSectionChecks())

async function fileOf(reading: Promise<PolicyFileResult>) {
  const result = await reading
  expect(result).toMatchObject({ ok: true })
  return result.ok ? result.file : expect.unreachable()
}

interface Schema {
  type?: string
  default?: unknown
  properties?: Record<string, Schema>
  additionalProperties?: Schema | boolean
  items?: Schema
  anyOf?: Schema[]
}

/** Every key of a schema, in the spelling of the docs: `code.length`, `routes.sms[].use`, `providers.<name>`. */
function keysOf(schema: Schema, at = ''): string[] {
  if (schema.properties) {
    const named = Object.entries(schema.properties).flatMap(([name, inner]) =>
      keysOf(inner, at ? `${at}.${name}` : name),
    )
    // Any other name.
    return typeof schema.additionalProperties === 'object' && schema.additionalProperties.type
      ? [...named, `${at}.<name>`]
      : named
  }
  if (typeof schema.additionalProperties === 'object') {
    return keysOf(schema.additionalProperties, `${at}.<name>`)
  }
  // A list of plain values is one key. A list of objects has its own keys.
  if (schema.items?.properties) return [`${at}[]`, ...keysOf(schema.items, `${at}[]`)]
  return [at]
}

const inputOf = (schema: z.ZodType) =>
  z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Schema

/** The rows of the table under a heading cell: key and default. */
function tableUnder(heading: string): { key: string; given: string }[] {
  const table = docs.slice(docs.indexOf(`| ${heading} |`)).split('\n\n')[0] ?? ''
  return [...table.matchAll(/^\| `([^`]+)` \| (?:`([^`]*)`)? ?\|/gm)].map(([, key, given]) => ({
    key: key as string,
    given: given ?? '',
  }))
}

test('docs/policy-file.md has every key of the schema and no other', () => {
  const documented = tableUnder('key').map(({ key }) => key)
  // The rooms that use them check their insides. The two rows stand for all of that.
  const expected = keysOf(inputOf(policyFileSchema)).flatMap((key) => {
    if (key === 'policies.<name>') return ['policies.<name>[]']
    return key === 'providers.<name>.kind' ? ['providers.<name>', key] : [key]
  })
  expect(documented.sort()).toEqual(expected.sort())
})

test('the defaults in docs/policy-file.md are the values of an empty file', async () => {
  const file = await fileOf(
    parse('{ policies: { captcha: [], notice: [], check: [] }, providers: {}, routes: {} }'),
  )
  const rows = tableUnder('key').filter(({ given }) => given !== '' && given !== './templates')
  expect(rows.length).toBeGreaterThanOrEqual(7)
  for (const { key, given } of rows) {
    let value: unknown = file
    for (const name of key.replaceAll('[]', '').split('.')) {
      value = (value as Record<string, unknown>)[name]
    }
    const spellings = [JSON.stringify(value instanceof Set ? [...value] : value)]
    if (typeof value === 'number') spellings.push(formatDuration(value))
    expect(spellings, key).toContain(given)
  }
  expect(file.templatesFolder).toBe(pathOf('templates'))
})

test('docs/policy-file.md has every key of a rule and no other, with its default', () => {
  const rule = inputOf(ruleSchema as unknown as z.ZodType)
  const rows = tableUnder('key of a rule')
  expect(rows.map(({ key }) => key).sort()).toEqual(Object.keys(rule.properties ?? {}).sort())
  for (const { key, given } of rows.filter(({ given }) => given !== '')) {
    expect(String(rule.properties?.[key]?.default)).toBe(given)
  }
})

test('docs/policy-file.md has every field of the catalogue with its calls, and no other', () => {
  const rows = [...docs.matchAll(/^\| `\{(\w+)\}` \| .+ \| ([a-z ]+) \|$/gm)]
  const expected = Object.entries(fields).map(([name, { of }]) => [name, of])
  expect(rows.map(([, ...row]) => row)).toEqual(expected)
})

test('docs/policy-file.md has every kind of provider with its channels and its page', () => {
  const rows = [...docs.matchAll(/^\| \[`([\w-]+)`\]\((.+?)\) \| ([a-z, ]+) \|/gm)]
  expect(rows.map(([, kind]) => kind).sort()).toEqual(ownKinds.map(({ kind }) => kind).sort())
  for (const [, name, page, channels = ''] of rows) {
    const kind = ownKinds.find((each) => each.kind === name)
    expect(channels.split(', ').sort()).toEqual([...(kind?.channels ?? [])].sort())
    expect(read(`docs/${page}`)).toContain(`kind: ${name}`)
  }
})

test('a policy that the product asks for may not be missing, nor use a field it never has', async () => {
  const text = read('postern.yaml').replace('key: "{app}:{ip}"', 'key: "{subject}"')
  expect(await parse(text.replace('  check:', '  checks:'), 'postern.yaml')).toEqual({
    ok: false,
    problems: [
      'postern.yaml:12: policies.captcha.3.key: there is no field {subject} here; there are to, mailbox, ip, prefix, dedupe, channel, app, scene, country, template, keyId, block, ipWide, lane',
      'postern.yaml:6: policies: check is missing; write "check: []" for no limits',
    ],
  })
})

test.each(['postern.yaml', 'deploy/postern.yaml'])(
  '%s is right, and so are its templates',
  async (path) => {
    const { templatesFolder } = await fileOf(parse(read(path), pathOf(path)))
    expect(loadTemplates(templatesFolder).has('captcha')).toBe(true)
  },
)

test('deploy/kubernetes/postern.yaml is right and has the rules of the default file', async () => {
  // Its templates are in the image, not on this machine.
  const checks = {
    ...createSectionChecks(),
    templates: () => ({
      bareLinks: [],
      has: () => true,
      names: [],
      isOfPlugin: () => false,
      smsTexts: () => [],
    }),
  }
  const path = 'deploy/kubernetes/postern.yaml'
  const pods = await fileOf(parsePolicyFile(read(path), path, env, checks))
  const shipped = await fileOf(parse(read('postern.yaml')))
  expect(pods.templatesFolder).toBe('/app/templates')
  expect(pods.policies).toEqual(shipped.policies)
  const compose = parse(read('deploy/postern.yaml'), pathOf('deploy/postern.yaml'))
  expect((await fileOf(compose)).policies).toEqual(shipped.policies)
})

test('the example of a refused file in docs/policy-file.md reads as Postern reports it', async () => {
  const [, shown = ''] = /Postern cannot start:\n([\s\S]*?)```/.exec(docs) ?? []
  const text = read('postern.yaml')
    .replace('fixed: 2 per 60s }', 'sliding: 2 }')
    .replace('sms: [{ use: [sandbox]', 'sms: [{ use: [phone]')
  const result = await parsePolicyFile(text, 'postern.yaml', env, createSectionChecks())
  const told = result.ok ? [] : result.problems
  expect(
    shown
      .trim()
      .split('\n')
      .map((line) => line.trim()),
  ).toEqual(told)
})
