/** SMS that carriers would block or change are reported at start, with file and line, by the rules of their countries. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { parsePolicyFile } from '../../src/config/policy-file.ts'
import { createSectionChecks } from '../../src/main/load-config.ts'

const texts = { 'captcha/sms.en.txt': '{{code}} is your ACME code. It is valid for {{validity}}.' }

/** The provider stands in line 4, the routes in line 6, `rest` from line 7 on. */
async function read(
  { from, match, rest = '' }: { from: string; match: string; rest?: string },
  templates: Readonly<Record<string, string>> = texts,
) {
  const folder = mkdtempSync(join(inject('runFolder'), 'carriers-'))
  for (const [file, text] of Object.entries(templates)) {
    mkdirSync(join(folder, 'templates', file, '..'), { recursive: true })
    writeFileSync(join(folder, 'templates', file), text)
  }
  const text = [
    'policies: { captcha: [], notice: [], check: [] }',
    'providers:',
    '  phone:',
    `    { kind: smpp, url: "smpp://id:pw@localhost", from: ${from.startsWith('{') ? from : `"${from}"`} }`,
    'routes:',
    `  sms: [{ ${match}use: [phone] }]`,
    rest,
  ].join('\n')
  const path = join(folder, 'postern.yaml')
  const result = await parsePolicyFile(text, path, {}, createSectionChecks())
  const short = (list: readonly string[]) => list.map((each) => each.replace(`${folder}/`, ''))
  return result.ok
    ? { problems: [], warnings: short(result.warnings) }
    : { problems: short(result.problems), warnings: [] }
}

const to = (...countries: string[]) => `match: { country: [${countries}] }, `

test('Australia, a name that is not registered → a warning with the line of the sender, and none once it is named', async () => {
  expect(await read({ from: 'ACME', match: to('AU') })).toEqual({
    problems: [],
    warnings: [
      expect.stringMatching(
        /^postern\.yaml:4: providers\.phone\.from: Australia: .*Unverified.*\. If it is registered, name it in senders\.phone\.AU\.registered\. \(https:.*, \d{4}-\d\d-\d\d\)$/,
      ),
    ],
  })
  const rest = 'senders: { phone: { AU: { registered: [ACME] } } }'
  expect(await read({ from: 'ACME', match: to('AU'), rest })).toEqual({
    problems: [],
    warnings: [],
  })
  const other = 'senders: { phone: { AU: { registered: [OTHER] } } }'
  expect((await read({ from: 'ACME', match: to('AU'), rest: other })).warnings).toHaveLength(1)
})

const india = (text: string) =>
  `senders: { phone: { IN: { entity: "1001", templates: { captcha: { id: "1107", text: "${text}" } } } } }`

test('India, a registered text without types, with other words or none → refused with the line of the template; as registered → nothing', async () => {
  const inIndia = (text: string) => read({ from: 'ACME', match: to('IN'), rest: india(text) })
  const untyped = await inIndia('{#var#} is your ACME code. It is valid for {#var#}.')
  expect(untyped.problems).toEqual([
    expect.stringMatching(/^templates\/captcha\/sms\.en\.txt:1: India: \{#var#\} .*\{#numeric#\}/),
  ])
  const other = await inIndia('{#numeric#} is the ACME code. It is valid for {#numeric#} minutes.')
  expect(other.problems).toEqual([
    expect.stringMatching(/sms\.en\.txt:1: India: the text lacks "is the ACME code\./),
  ])
  const same = await inIndia('{#numeric#} is your ACME code. It is valid for {#numeric#} minutes.')
  expect(same).toEqual({ problems: [], warnings: [] })
  const { problems } = await read({
    ...{ from: 'ACME', match: to('IN') },
    rest: 'senders: { phone: { IN: { registered: [OTHER] } } }',
  })
  expect(problems).toEqual([
    expect.stringMatching(/^postern\.yaml:4: providers\.phone\.from: India: /),
    expect.stringMatching(/sms\.en\.txt:1: India: .*name it in senders\.phone\.IN\.templates\. \(/),
  ])
})

test.each([
  ['IN', 'ACMEIN'],
  ['US', '+12125550123'],
])(
  '%s, no registration is named → only warnings, because the file does not deny one',
  async (country, from) => {
    const { problems, warnings } = await read({ from, match: to(country) })
    expect(problems).toEqual([])
    expect(warnings[0]).toMatch(
      new RegExp(`^postern\\.yaml:4: .* name it in senders\\.phone\\.${country}\\.registered\\.`),
    )
  },
)

test('China, a text without registration → refused if others are registered; without a signature → a warning, because some providers add it', async () => {
  const others = 'senders: { phone: { CN: { registered: [ACME] } } }'
  const { problems } = await read({ from: 'ACME', match: to('CN'), rest: others })
  expect(problems).toEqual([
    expect.stringMatching(/sms\.en\.txt:1: China: each text must be registered/),
  ])
  const unsaid = await read({ from: 'ACME', match: to('CN') })
  expect([unsaid.problems, unsaid.warnings]).toEqual([
    [],
    [
      expect.stringMatching(/:4: /),
      expect.stringMatching(/sms\.en\.txt:1: China: a text must begin with .*【】/),
      expect.stringMatching(/sms\.en\.txt:1: China: each text must be registered/),
    ],
  ])
  const rest = 'senders: { phone: { CN: { templates: { captcha: {} } } } }'
  const signed = { 'captcha/sms.zh.txt': '【安可美】您的验证码是 {{code}}。' }
  const { problems: none, warnings } = await read({ from: 'ACME', match: to('CN'), rest }, signed)
  expect([none, warnings]).toEqual([
    [],
    [expect.stringMatching(/:4: .*replace|:4: .*in its place/)],
  ])
})

test('Malaysia, a link in the second line of one template of two → refused there, unless the route does not send it', async () => {
  const linked = { ...texts, 'welcome/sms.en.txt': 'Welcome to ACME.\nhttps://acme.example/start' }
  const { problems } = await read({ from: '60123456789', match: to('MY') }, linked)
  expect(problems).toEqual([
    expect.stringMatching(/^templates\/welcome\/sms\.en\.txt:2: Malaysia: the text has a link/),
  ])
  const match = 'match: { country: MY, template: captcha }, '
  expect((await read({ from: '60123456789', match }, linked)).problems).toEqual([])
})

test.each([
  ['GB', 'VERIFY'],
  ['SG', 'OTP'],
  ['US', 'ACME'],
])('%s, the sender %s → refused with its line', async (country, from) => {
  const { problems } = await read({ from, match: to(country) })
  expect(problems.length).toBeGreaterThan(0)
  expect(problems[0]).toMatch(/^postern\.yaml:4: providers\.phone\.from: /)
})

test('a text that is right in one of its languages → the other language is a warning, each problem once for two routes', async () => {
  const two = { ...texts, 'captcha/sms.zh.txt': '【安可美】您的验证码是 {{code}}。' }
  const rest = 'senders: { phone: { CN: { templates: { captcha: {} } } } }'
  const match = `${to('CN')}use: [phone] }, { match: { country: CN, app: web }, `
  const { problems, warnings } = await read({ from: 'ACME', match, rest }, two)
  expect(problems).toEqual([])
  expect(warnings).toEqual([
    expect.stringMatching(/:4: /),
    expect.stringMatching(/sms\.en\.txt:1: China: a text must begin/),
  ])
})

test('a route without countries → a warning that it is checked for none; a provider whose far end chooses the text → nothing', async () => {
  expect(await read({ from: 'INFO', match: '' })).toEqual({
    problems: [],
    warnings: [expect.stringMatching(/^postern\.yaml:6: routes\.sms\.0: without match\.country/)],
  })
  const none = await parsePolicyFile(
    '{ policies: { captcha: [], notice: [], check: [] }, providers: { box: { kind: sandbox } }, routes: { sms: [{ match: { country: CN }, use: [box] }] } }',
    join(import.meta.dirname, '../../postern.yaml'),
    {},
    createSectionChecks(),
  )
  expect(none).toMatchObject({ ok: true, warnings: [] })
})

test('an unknown provider, an unknown template and a wrong key in senders → problems with their lines', async () => {
  const rest = 'senders:\n  fone: { AU: {} }\n  phone:\n    AU: { templates: { capcha: {} } }'
  expect((await read({ from: 'ACME', match: to('AU'), rest })).problems).toEqual([
    'postern.yaml:8: senders.fone: there is no provider "fone"',
    'postern.yaml:10: senders.phone.AU.templates.capcha: there is no template "capcha"',
  ])
  const wrong = 'senders: { phone: { AU: { registred: [ACME] } } }'
  expect((await read({ from: 'ACME', match: to('AU'), rest: wrong })).problems).toEqual([
    'postern.yaml:7: senders.phone.AU.registred: unknown key',
  ])
})

test('recipients.withoutWebOtp → the text is checked without its last line', async () => {
  const webOtp = { 'captcha/sms.en.txt': '{{code}} is your ACME code.\n\n@acme.example #{{code}}' }
  const rest = india('{#numeric#} is your ACME code.')
  expect((await read({ from: 'ACME', match: to('IN'), rest }, webOtp)).problems).toHaveLength(1)
  const off = `${rest}\nrecipients: { withoutWebOtp: [IN] }`
  expect((await read({ from: 'ACME', match: to('IN'), rest: off }, webOtp)).problems).toEqual([])
})

test('senders by country: each is checked for its own country, a country that is not served is not, and the place is named', async () => {
  const from = '{ default: ACME, AU: ACMEAU, SG: VERIFY, IN: false }'
  const { problems, warnings } = await read({ from, match: to('AU', 'SG', 'IN', 'GB') })
  const all = [...problems, ...warnings]
  const inAu = /^postern\.yaml:4: providers\.phone\.from\.AU: Australia: .*"ACMEAU"/
  expect(all).toContainEqual(expect.stringMatching(inAu))
  expect(all).toContainEqual(expect.stringMatching(/providers\.phone\.from\.SG: Singapore: /))
  expect(all.filter((one) => / India: /.test(one))).toEqual([])
  const registered = { rest: 'senders: { phone: { AU: { registered: [ACMEAU] } } }' }
  const named = await read({ from, match: to('AU'), ...registered })
  expect(named).toEqual({ problems: [], warnings: [] })
  const byDefault = await read({ from: '{ default: ACME }', match: to('AU') })
  expect(byDefault.warnings).toEqual([expect.stringMatching(/from\.default: Australia: /)])
})

test('senders by country without match.country: the named countries are checked, and only with a default there are others', async () => {
  const without = await read({ from: '{ AU: ACME }', match: '' })
  expect(without.warnings).toEqual([expect.stringMatching(/from\.AU: Australia: /)])
  const { warnings } = await read({ from: '{ AU: ACME, default: ACME }', match: '' })
  expect(warnings).toEqual([
    expect.stringMatching(/its SMS to countries that its sender does not name are checked for/),
    expect.stringMatching(/from\.AU: Australia: /),
  ])
})

test('editions by country: a country is checked with its own edition, others with the one for all', async () => {
  const registered = '{#numeric#} is your ACME code. It is valid for {#numeric#} minutes.'
  const templates = {
    'captcha/sms.en.txt': 'Your code: {{code}}',
    'captcha/sms.en.IN.txt': '{{code}} is your ACME code. It is valid for {{validity}}.',
  }
  const inIndia = { from: 'ACME', match: to('IN'), rest: india(registered) }
  expect(await read(inIndia, templates)).toEqual({ problems: [], warnings: [] })
  const wrong = { ...templates, 'captcha/sms.en.IN.txt': 'India: {{code}}' }
  expect((await read(inIndia, wrong)).problems).toEqual([
    expect.stringMatching(/^templates\/captcha\/sms\.en\.IN\.txt:1: India: /),
  ])
})
