import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { z } from 'zod'
import type { SectionChecks } from '../../src/config/cross-checks.ts'
import { parsePolicyFile, readPolicyFile, settingsProblems } from '../../src/config/policy-file.ts'
import { changedSections } from '../../src/config/reloadable-file.ts'

const noChecks: SectionChecks = {
  plugin: async () => undefined,
  facade: () => [],
  ownPolicies: () => ({}),
  provider: () => [],
  readRecipient: (to) => to,
  readMailbox: (to) => to,
  channelsOf: () => ['sms', 'email'],
  templates: () => ({
    bareLinks: [],
    has: () => true,
    names: [],
    isOfPlugin: () => false,
    smsTexts: () => [],
  }),
}
const read = (
  text: string,
  env: Record<string, string> = {},
  checks: Partial<SectionChecks> = {},
) => parsePolicyFile(text, '/etc/postern/postern.yaml', env, { ...noChecks, ...checks })
const problemsOf = async (reading: ReturnType<typeof read>) => {
  const result = await reading
  expect(result.ok).toBe(false)
  return result.ok ? [] : result.problems
}
const small =
  'policies: { captcha: [], notice: [], check: [] }\nproviders: { box: { kind: sandbox } }\nroutes: {}\n'

test('a small file: everything it leaves out has its default, paths start from the file', async () => {
  const result = await read(`${small}templates: ../messages\n`)
  expect(result).toMatchObject({
    ok: true,
    file: {
      code: { length: 4, ttl: 300_000, triesPerCode: 3 },
      templatesFolder: '/etc/messages',
      routes: { email: [], sms: [] },
    },
  })
})

test.each(['9007199254740993', '-9007199254740993', '86138001380001234567', '007'])(
  'a number that loses digits, as %s does, is refused with its line',
  async (number) => {
    const where = (value: string) =>
      small.replace('{ kind: sandbox }', `\n  { kind: sandbox,\n    where: { /code: ${value} } }`)
    expect(await problemsOf(read(where(number)))).toContainEqual(
      expect.stringMatching(
        new RegExp(`:4: the number ${number} loses digits: write it in quotes$`),
      ),
    )
    expect(await read(where(`"${number}"`))).toMatchObject({ ok: true })
  },
)

test('a section or setting that is absent is called missing', async () => {
  expect(await problemsOf(read('routes: {}\n'))).toEqual([
    expect.stringMatching(/:1: policies: is missing$/),
    expect.stringMatching(/:1: providers: is missing$/),
  ])
  const settings = z.object({ url: z.url(), port: z.number() })
  expect(settingsProblems({ settings }, { port: '25' }, () => undefined)).toEqual([
    { path: ['url'], message: 'is missing' },
    { path: ['port'], message: 'Invalid input: expected number, received string' },
  ])
})

test('unknown keys are refused with their own line, wherever they stand', async () => {
  const problems = await problemsOf(
    read(
      [
        'code: { length: 4, lenght: 5 }',
        'policies: { captcha: [], notice: [], check: [] }',
        'providers:',
        '  box: { kind: sandbox }',
        'routes:',
        '  sms:',
        '    - use: [box]',
        '      when: { country: CN }',
        'colour: red',
      ].join('\n'),
    ),
  )
  expect(problems).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/:1: code\.lenght: unknown key/),
      expect.stringMatching(/:8: routes\.sms\.0\.when: unknown key/),
      expect.stringMatching(/:9: colour: unknown key/),
    ]),
  )
  expect(problems).toHaveLength(3)
})

test('every problem is listed at once, with the line of the value', async () => {
  const problems = await problemsOf(
    read(
      [
        'code:',
        '  length: 3',
        '  ttl: 5 minutes',
        'policies: { captcha: [], notice: [], check: [] }',
        'providers: { box: { kind: sandbox } }',
        'routes:',
        '  sms:',
        '    - { use: [] }',
      ].join('\n'),
    ),
  )
  expect(problems.map((problem) => problem.split(': ')[0])).toEqual([
    '/etc/postern/postern.yaml:2',
    '/etc/postern/postern.yaml:3',
    '/etc/postern/postern.yaml:8',
  ])
})

test('sections of the wrong type are one problem each, and the other sections are still checked', async () => {
  const text = [
    'policies: { captcha: [], notice: [], check: [] }',
    'providers: { box: 7 }',
    'routes: { sms: [{ use: [box] }] }',
    'templates: 7',
    'colour: red',
  ].join('\n')
  const problems = await problemsOf(read(text, {}, { channelsOf: () => [] }))
  expect(problems.sort()).toEqual([
    expect.stringMatching(/:2: providers\.box: /),
    expect.stringMatching(/:4: templates: /),
    expect.stringMatching(/:5: colour: unknown key/),
  ])
})

test('an undefined provider in a route is found with its line', async () => {
  const text =
    'policies: { captcha: [], notice: [], check: [] }\nproviders: { box: { kind: sandbox } }\nroutes:\n  sms:\n    - use: [box, gone]\n'
  expect(await problemsOf(read(text))).toEqual([
    expect.stringMatching(/:5: .*there is no provider "gone"/),
  ])
  const prototype = text.replace('gone', 'constructor')
  expect(await problemsOf(read(prototype))).toEqual([
    expect.stringMatching(/:5: .*there is no provider "constructor"/),
  ])
})

test('a name that is none: the rule for names, with its line', async () => {
  const text =
    'policies: { captcha: [], notice: [], check: [] }\nproviders:\n  Box: { kind: sandbox }\nroutes: { sms: [], email: [] }\n'
  expect(await problemsOf(read(text))).toContainEqual(
    expect.stringMatching(/:3: providers\.Box: must be a short lower-case name$/),
  )
})

test('findings of other rooms get their lines', async () => {
  const text = [
    'policies:',
    '  notice: []',
    '  check: []',
    '  captcha:',
    '    - name: a',
    '      key: "{to}"',
    '      sliding: 1 per 1',
    'providers:',
    '  box:',
    '    kind: sandbox',
    '    colour: red',
    'routes: {}',
  ].join('\n')
  const problems = await problemsOf(
    read(text, {}, { provider: (name) => [{ path: ['colour'], message: `unknown in ${name}` }] }),
  )
  expect(problems).toEqual([
    expect.stringMatching(/^\/etc\/postern\/postern.yaml:7: policies.captcha.0.sliding: /),
    '/etc/postern/postern.yaml:11: providers.box.colour: unknown in box',
  ])
})

test('a value from the environment is text and never read as YAML', async () => {
  const text = `policies: { captcha: [], notice: [], check: [] }\nproviders: { box: { kind: sandbox, url: "\${A}-\${B}" } }\nroutes: {}\n`
  const result = await read(text, { A: 'x: { y }\nz', B: `\${A}` })
  expect(result.ok && result.file.providers.box?.settings).toEqual({ url: `x: { y }\nz-\${A}` })
  expect(await problemsOf(read(text, { A: 'x', B: '' }))).toEqual([
    '/etc/postern/postern.yaml:2: B is not set in the environment',
  ])
})

test.each([
  // Its sections are not checked.
  ['no YAML', 'policies: {', /:\d+: (?!policies|providers|routes)/],
  ['a key twice', `${small}policies: { captcha: [], notice: [], check: [] }\n`, /:4: /],
  ['two documents', `${small}---\n${small}`, /:\d+: /],
])('a file that is %s is refused with a line', async (_, text, line) => {
  const problems = await problemsOf(read(text))
  expect(problems.length).toBeGreaterThan(0)
  for (const problem of problems) expect(problem).toMatch(line)
})

test('a time limit of a call that a stop could not wait for is refused', async () => {
  const text = (timeout: string) => `${small}delivery: { timeout: ${timeout} }\n`
  expect(await problemsOf(read(text('16s')))).toEqual([
    expect.stringMatching(/delivery\.timeout: must be at most 15s/),
  ])
  expect((await read(text('15s'))).ok).toBe(true)
})

test('a missing file is reported', async () => {
  expect(await readPolicyFile('/nowhere/postern.yaml', {}, noChecks)).toEqual({
    ok: false,
    problems: ['/nowhere/postern.yaml cannot be read (ENOENT)'],
  })
})

test('changedSections names providers and routes one by one, and nothing that is the same', async () => {
  const file = async (text: string) => {
    const result = await read(text)
    if (!result.ok) throw new Error(result.problems.join())
    return result.file
  }
  const before = `policies: { captcha: [], notice: [], check: [] }
providers: { a: { kind: sandbox }, b: { kind: sandbox } }
routes: { sms: [{ use: [a] }], email: [{ use: [a] }] }`
  expect(
    changedSections(await file(before), await file(`# other text, same meaning\n${before}`)),
  ).toEqual([])
  const after = `policies: { captcha: [], notice: [], check: [], login: [] }
code: { length: 6 }
providers: { a: { kind: sandbox, url: x }, c: { kind: sandbox } }
routes: { sms: [{ use: [a] }], email: [{ use: [a, c] }] }
templates: ./other`
  expect(changedSections(await file(before), await file(after)).sort()).toEqual([
    'code',
    'policies',
    'providers.a',
    'providers.b',
    'providers.c',
    'routes.email',
    'templates',
  ])
})

test.each([
  ['without an anchor', 'policies: *gone\n'],
  [
    'of aliases without end',
    `a: &a [${'x,'.repeat(20)}]\nb: &b [${'*a,'.repeat(20)}]\nc: [${'*b,'.repeat(20)}]\n`,
  ],
])('an alias %s is refused as a problem of the file', async (_, text) => {
  const problems = await problemsOf(read(text))
  expect(problems).toContainEqual(expect.stringMatching(/^\/etc\/postern\/postern\.yaml: .*alias/i))
})

test('a file of another encoding → refused as such, and nothing is read from it', async () => {
  const folder = inject('runFolder')
  const problem = async (bytes: Buffer) => {
    const path = join(folder, 'another-encoding.yaml')
    writeFileSync(path, bytes)
    const read = await readPolicyFile(path, {}, noChecks)
    return read.ok ? [] : read.problems.map((text) => text.replace(path, 'file'))
  }
  const latin1 = Buffer.from(`${small}# caf\u00e9\n`, 'latin1')
  for (const bytes of [latin1, Buffer.from(`\ufeff${small}`, 'utf16le')]) {
    expect(await problem(bytes)).toEqual(['file is not UTF-8; save it as UTF-8'])
  }
  expect(await problem(Buffer.from(`\ufeff${small}`))).toEqual([])
})

test.each([
  ['', 'is empty; postern.yaml of this version is an example'],
  ['# nothing yet\n', 'is empty; postern.yaml of this version is an example'],
  ['- policies\n', 'must have sections, such as policies: and providers:'],
  ['policies\n', 'must have sections, such as policies: and providers:'],
])('a file with %j instead of sections → one problem that names it', async (text, problem) => {
  expect(await problemsOf(read(text))).toEqual([`/etc/postern/postern.yaml:1: ${problem}`])
})

test('a number or a word of YAML where a text belongs → the problem asks for quotes', async () => {
  const text = `${small}testing: { recipients: [{ to: +15005550006, code: 0123 }], until: 2030-01-01 }
recipients: { countries: [GB, true], refuse: [+8613800138000] }
`
  expect(await problemsOf(read(text))).toEqual(
    [
      /:4: the number 0123 loses digits: write it in quotes$/,
      /:5: recipients\.countries\.1: must be a text; put it in quotes$/,
      /:5: recipients\.refuse\.0: must be a text; put it in quotes$/,
      /:4: testing\.recipients\.0\.to: must be a text; put it in quotes$/,
      /:4: testing\.recipients\.0\.code: must be a text; put it in quotes$/,
    ].map((pattern) => expect.stringMatching(pattern)),
  )
})

test.each(['TOKEN:-x}', 'MY-TOKEN}', '}', 'B', ' TOKEN }'].map((rest) => `a\${${rest}`))(
  'a variable in a form that is not read (%s) → refused, because its text would be the value',
  async (value) => {
    const text = small.replace('kind: sandbox', `kind: sandbox, secret: "${value}"`)
    expect(await problemsOf(read(text, { TOKEN: 'x' }))).toEqual([
      expect.stringMatching(/:2: a variable is written \$\{NAME\}, with letters, digits and _/),
    ])
  },
)

test('a line break around the value of a variable is no part of it', async () => {
  const text = small.replace('kind: sandbox', `kind: sandbox, secret: "\${A}-"`)
  const result = await read(text, { A: 'x\ny\n' })
  expect(result.ok && result.file.providers.box?.settings).toEqual({ secret: 'x\ny-' })
})

test('merge keys: a provider takes the settings of another, and its own win', async () => {
  const text = small.replace(
    'providers: { box: { kind: sandbox } }',
    'providers: { box: &box { kind: sandbox, a: 1, b: 2 }, other: { <<: *box, b: 3 } }',
  )
  const result = await read(text)
  expect(result.ok && result.file.providers.other).toMatchObject({ settings: { a: 1, b: 3 } })
})

test('links: an address for each scene; one that would show its code elsewhere is refused with its line', async () => {
  const right = {
    signup: 'https://shop.example/verify',
    login: 'https://shop.example:8443?next=%2F',
    test: 'http://localhost:5173/verify',
    local: 'http://127.0.0.1',
  }
  const result = await read(`${small}links: ${JSON.stringify(right)}\n`)
  expect(result).toMatchObject({ ok: true, file: { links: new Map(Object.entries(right)) } })
  const wrong = [
    'http://shop.example/verify',
    'http://localhost.shop.example',
    'http://127.0.0.2',
    'https://shop.example/#top',
    'https://shop.example/#',
    'https://ann:secret@shop.example',
    'javascript:alert(1)',
    'shop.example/verify',
    'https:shop.example',
    'https://shop.example/a b',
    'https://shop.example/"><b>',
    '/verify',
    '',
  ]
  const lines = wrong.map((address, index) => `  s${index}: ${JSON.stringify(address)}\n`)
  const problems = await problemsOf(read(`${small}links:\n${lines.join('')}`))
  expect(problems).toEqual(
    wrong.map((_, index) =>
      expect.stringMatching(
        new RegExp(`^/etc/postern/postern.yaml:${index + 5}: links.s${index}: must be an address`),
      ),
    ),
  )
  expect(await problemsOf(read(`${small}links: { Sign up: "https://a.example" }\n`))).toEqual([
    expect.stringContaining('postern.yaml:4: links.Sign up: must be a short lower-case name'),
  ])
})

test('a template needs a link, and no scene has one → refused with the place in the template', async () => {
  const bareLinks = ['/etc/postern/templates/captcha/email.en.txt:3']
  const templates = () => ({
    ...{ bareLinks, has: () => true, names: [], isOfPlugin: () => false, smsTexts: () => [] },
  })
  for (const none of ['', 'links: {}\n']) {
    expect(await problemsOf(read(small + none, {}, { templates }))).toEqual([
      expect.stringMatching(
        /^\/etc\/postern\/templates\/captcha\/email\.en\.txt:3: no scene has a link/,
      ),
    ])
  }
  const links = 'links: { signup: https://shop.example }\n'
  expect(await read(small + links, {}, { templates })).toMatchObject({ ok: true })
})
