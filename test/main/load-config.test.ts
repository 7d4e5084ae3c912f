import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, inject, test } from 'vitest'
import { loadConfig } from '../../src/main/load-config.ts'
import { noLimits, posternEnv } from '../tools/postern.ts'

/** The problems of a policy file with these sections, without file names and lines. */
async function problemsOf(sections: Record<string, unknown>): Promise<string[]> {
  const nowhere = {
    redis: { url: 'redis://localhost' },
    database: { url: 'postgresql://localhost' },
  }
  const env = posternEnv({
    policyFile: { policies: noLimits, ...sections },
    ...(nowhere as unknown as Pick<Parameters<typeof posternEnv>[0], 'redis' | 'database'>),
  })
  const loaded = await loadConfig(env)
  return loaded.ok ? [] : loaded.problems.map((problem) => problem.replace(/^.*\.yaml:\d+: /, ''))
}

const sandbox = { kind: 'sandbox' }
const aliyun = {
  kind: 'aliyun',
  accessKeyId: 'id',
  accessKeySecret: 'secret',
  signName: 'Acme',
  templates: { nowhere: { zh: 'SMS_1' } },
}
const routes = { sms: [{ use: ['phone'] }], email: [] }

describe('what can be known at start is reported at start', () => {
  test.for([
    [
      'the kind http: a wrong pointer, an unknown variable, a channel that its entry does not have',
      {
        providers: {
          phone: {
            kind: 'http',
            url: 'https://api.acme.test/messages',
            json: { to: ['{{too}}'] },
            accepted: { id: 'id', where: { code: 0 } },
            errors: [{ status: 'often', is: 'rejected' }],
          },
          pigeon: { kind: 'http', url: 'https://api.acme.test/messages' },
        },
        routes: { sms: [{ use: ['phone'] }], email: [{ use: ['pigeon'] }] },
      },
      [
        /^providers\.phone\.json\.to\.0: there is no variable {{too}}/,
        /^providers\.phone\.accepted\.where\.code: must be a JSON pointer, such as \/data\/0\/id/,
        /^providers\.phone\.accepted\.id: must be a JSON pointer/,
        /^providers\.phone\.errors\.0\.status: .*expected number/,
        /^routes\.email\.0\.use: provider "pigeon" cannot send email/,
      ],
    ],
    [
      'a good file',
      { providers: { phone: { ...sandbox, pace: '5 per 1s', quotas: '1 per 60s' } }, routes },
      [],
    ],
    [
      'rules for pages: a field that sends lack, a field that checks lack',
      {
        policies: { ...noLimits, check: [{ name: 'guesses', key: '{to}', sliding: '9 per 1h' }] },
        browser: {
          rules: [{ name: 'sends', key: '{subject}', sliding: '5 per 1h' }],
          checkRules: [
            { name: 'ip', key: '{ip}', sliding: '5 per 1h' },
            { name: 'dup', key: '{dedupe}', sliding: '5 per 1h' },
          ],
        },
      },
      [
        /^browser\.rules\.0\.key: there is no field \{subject\} here/,
        /^browser\.checkRules\.1\.key: there is no field \{dedupe\} here/,
      ],
    ],
    [
      'a rule for checks by pages that is none',
      { browser: { checkRules: [{ name: 'ip', key: '{ip}', sliding: 'often' }] } },
      [/^browser\.checkRules\.0\.sliding: "often" is not a limit/],
    ],
    [
      'a rule for checks by pages with the name of one of check',
      {
        policies: { ...noLimits, check: [{ name: 'ip', key: '{to}', sliding: '9 per 1h' }] },
        browser: { checkRules: [{ name: 'ip', key: '{ip}', sliding: '5 per 1h' }] },
      },
      [/^browser\.checkRules: two rules are named "ip"/],
    ],
    [
      'policies under the names of those for pages',
      { policies: { ...noLimits, 'browser-check': [], 'browser-guess': [] } },
      [
        /^policies\.browser-check: "browser-check" is a reserved name; its rules belong in browser\.checkRules/,
        /^policies\.browser-guess: "browser-guess" is a reserved name; its rules belong in browser\.checkRules/,
      ],
    ],
    [
      'no policy captcha and none for checks',
      {
        policies: { notice: [] },
        browser: { rules: [{ name: 'r', key: '{x}', fixed: '1 per 1h' }] },
      },
      [
        /^browser\.rules\.0\.key: there is no field \{x\} here/,
        /^policies: captcha is missing/,
        /^policies: check is missing/,
      ],
    ],
    [
      'policies that include policies which include others',
      {
        policies: {
          captcha: [{ include: 'shared' }],
          notice: [],
          check: [{ include: 'shared' }],
          shared: [{ name: 'all', key: '{app}', sliding: '9 per 1h' }],
        },
      },
      [],
    ],
    [
      'a pace and quotas that are none',
      { providers: { phone: { ...sandbox, pace: 'fast', quotas: ['1 per 60s', 'few'] } }, routes },
      [
        /^providers\.phone\.pace: "fast" is not a limit/,
        /^providers\.phone\.quotas: .*"few"|expected/,
      ],
    ],
    [
      'weights beside plain names',
      {
        providers: { phone: sandbox },
        routes: { sms: [{ use: ['phone', { provider: 'phone', weight: 1 }] }], email: [] },
      },
      [/^routes\.sms\.0\.use/],
    ],
    [
      'weights that are all 0',
      {
        providers: { phone: sandbox },
        routes: { sms: [{ use: [{ provider: 'phone', weight: 0 }] }], email: [] },
      },
      [/^routes\.sms\.0\.use/],
    ],
    [
      'a provider that does not carry the channel',
      {
        providers: { phone: { ...aliyun, templates: {} } },
        routes: { sms: [], email: [{ use: ['phone'] }] },
      },
      [/^routes\.email\.0\.use: provider "phone" cannot send email/],
    ],
    [
      "a template of a provider's settings, or of a route, that is not there",
      {
        providers: { phone: aliyun },
        routes: { sms: [{ match: { template: 'lost' }, use: ['phone'] }], email: [] },
      },
      [
        /^providers\.phone\.templates\.nowhere: there is no template "nowhere"/,
        /^routes\.sms\.0\.match\.template: there is no template "lost"/,
      ],
    ],
    [
      'templates for pages, one of them not there',
      { browser: { templates: ['captcha', 'lost'] }, providers: { phone: sandbox }, routes },
      [/^browser\.templates\.1: there is no template "lost"/],
    ],
    [
      'test recipients that are none, stand there twice, or whose codes have another length',
      {
        code: { length: 6 },
        recipients: { defaultCountry: 'CN' },
        testing: {
          recipients: [
            { to: '+15005550006', code: '000000' },
            { to: 'nobody', code: '000000' },
            { to: 'a@b@acme.test', code: '000000' },
            { to: '13800138000', code: '0000' },
            { to: '+86 138 0013 8000', code: '000000' },
          ],
        },
        providers: {},
        routes: {},
      },
      [
        /^testing\.recipients\.1\.to: is neither a phone number nor a mail address/,
        /^testing\.recipients\.2\.to: is neither/,
        /^testing\.recipients\.3\.code: has 4 digits, and code\.length is 6/,
        /^testing\.recipients\.4\.to: is in the list twice/,
      ],
    ],
    [
      'test recipients of a wrong shape',
      {
        testing: { recipients: [{ to: '+15005550006', code: 42 }], until: '31.12.2026' },
        providers: {},
        routes: {},
      },
      [/^testing\.recipients\.0\.code/, /^testing\.until/],
    ],
    [
      'a policy with a name that is taken',
      { policies: { ...noLimits, 'captcha-test': [] }, providers: {}, routes: {} },
      [/^policies\.captcha-test: is reserved for sends to test recipients/],
    ],
    [
      'refused domains, one of them none',
      {
        recipients: { mail: { refuse: ['Tempmail.TEST', 'пример.рф', 'no domain'] } },
        providers: {},
        routes: {},
      },
      [/^recipients\.mail\.refuse\.2: must be a domain/],
    ],
  ] as [string, Record<string, unknown>, RegExp[]][])('%s', async ([, sections, expected]) => {
    const problems = await problemsOf(sections)
    expect(problems).toHaveLength(expected.length)
    expected.forEach((pattern, index) => {
      expect(problems[index]).toMatch(pattern)
    })
  })
})

test('problems of every kind, of environment and file together → one list, each with its line', async () => {
  const folder = mkdtempSync(join(inject('runFolder'), 'config-'))
  const file = join(folder, 'postern.yaml')
  mkdirSync(join(folder, 'templates/captcha'), { recursive: true })
  writeFileSync(join(folder, 'templates/captcha/sms.en.txt'), '{{code}}')
  writeFileSync(
    file,
    `code: { length: 3, lenght: 4 }
policies:
  captcha:
    - { name: a, key: "{to}", sliding: often }
  captcha: []
  notice:
    - { name: b, key: "{colour}", fixed: 1 per 1s }
  check: []
providers:
  mail: { kind: smtp, url: "\${NOT_SET}", from: 5 }
  phone: { kind: pigeon }
  box: { kind: sandbox }
  other: { king: sandbox }
  Wrong: { kind: sandbox }
routes:
  sms:
    - { use: [gone, mail] }
    - { use: [] }
    - { match: { template: lost }, use: [box, other] }
colour: red
`,
  )
  const loaded = await loadConfig({
    POSTERN_CONFIG: file,
    REDIS_URL: 'redis://localhost',
    SECRET: 'short',
  })
  const problems = loaded.ok ? [] : loaded.problems
  const expected = [
    /^DATABASE_URL is not set$/,
    /^SECRET: must have at least 32 bytes$/,
    /:1: code\.length: /,
    /:1: code\.lenght: unknown key/,
    /:5: Map keys must be unique/,
    /:7: policies\.notice\.0\.key: there is no field \{colour\}/,
    /:10: NOT_SET is not set in the environment/,
    /:10: providers\.mail\.from: /,
    /:11: providers\.phone\.kind: "pigeon" is not one of/,
    /:13: providers\.other\.kind: /,
    /:14: providers\.Wrong: /,
    /:17: routes\.sms\.0\.use: there is no provider "gone"/,
    /:17: routes\.sms\.0\.use: provider "mail" cannot send sms/,
    /:18: routes\.sms\.1\.use: /,
    /:19: routes\.sms\.2\.match\.template: there is no template "lost"/,
    /:20: colour: unknown key/,
  ]
  for (const pattern of expected) expect(problems).toContainEqual(expect.stringMatching(pattern))
  expect(problems).toHaveLength(expected.length)
})

test('a template with a problem, and a policy file with another → both, the template by its file', async () => {
  const folder = mkdtempSync(join(inject('runFolder'), 'config-'))
  const template = join(folder, 'templates/captcha/sms.en.txt')
  mkdirSync(dirname(template), { recursive: true })
  writeFileSync(template, '{{#if code}}')
  const file = join(folder, 'postern.yaml')
  writeFileSync(file, 'code: { length: 3 }\npolicies: {}\nproviders: {}\nroutes: {}\n')
  const loaded = await loadConfig({ POSTERN_CONFIG: file })
  const problems = loaded.ok ? [] : loaded.problems
  expect(problems).toContainEqual(expect.stringContaining(`${file}:1: code.length: `))
  expect(problems).toContainEqual(expect.stringMatching(new RegExp(`^${template}: `)))
  expect(problems).toContainEqual(expect.stringMatching(/^SECRET is not set/))
})
