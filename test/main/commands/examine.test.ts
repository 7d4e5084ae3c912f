/** Findings that need no server: secrets, the policy file, keys, clocks, and their form. */

import { describe, expect, test, vi } from 'vitest'
import { parse } from 'yaml'
import { examineKeys } from '../../../src/access/examine-keys.ts'
import type { Finding } from '../../../src/base/finding.ts'
import { reportOf } from '../../../src/base/finding.ts'
import { examinePolicy, examineProxy } from '../../../src/config/examine-policy.ts'
import { examineSecrets, rotationLasts } from '../../../src/config/examine-secrets.ts'
import { policyFileSchema } from '../../../src/config/policy-schema.ts'
import { examineMessages } from '../../../src/delivery/examine-messages.ts'
import { createSectionChecks } from '../../../src/main/load-config.ts'
import { createTestRecipients } from '../../../src/recipient/test-recipients.ts'
import { lookAtClock } from '../../../src/storage/examine-clock.ts'
import { loadTemplates } from '../../tools/load-templates.ts'
import { readSource } from '../../tools/source-files.ts'
import { templatesFolder } from '../../tools/templates-folder.ts'

const told = (findings: Finding[]) => findings.map(({ state, message }) => `${state}: ${message}`)
const random = '3b1f9c0e7a5d42868f13e6d90b7c52a4f8e1d3c6b5a79081726354afbecd0912'

describe('secrets', () => {
  test.each([
    ['chance', random, /^ok: SECRET is long/],
    ['sixteen bytes of chance', random.slice(0, 32), /^ok/],
    ['one letter', 'a'.repeat(64), /^error: SECRET can be guessed: about 0 bits/],
    ['one word again and again', 'hunter2-'.repeat(8), /^error: SECRET can be guessed/],
    ['digits in a row', '1111111111222222222233333333334444', /^error/],
    ['words', 'please change me before production, or else', /^warning: SECRET contains words/],
  ])('%s', (_, SECRET, expected) => {
    const [first = '', ...others] = told(examineSecrets({ SECRET }))
    expect(first).toMatch(expected)
    expect(others).toEqual([])
  })

  test('secrets of the policy file by their place', () => {
    const hook = (secret: string) => ({ kind: 'logto', secret, app: 'web' })
    const checks = createSectionChecks()
    checks.facade('camara', {})
    checks.facade('hooks', { a: hook(random), b: hook('hunter2-') })
    expect(told(examineSecrets({}, checks.found().facadeSecrets))).toEqual([
      'ok: compat.hooks.a.secret is long and looks random',
      expect.stringMatching(/^error: compat\.hooks\.b\.secret can be guessed: about \d+ bits/),
    ])
  })

  test('only secrets of Postern are checked, and none is shown', () => {
    const env = {
      SECRET: random,
      HOME: '/root',
      SECRET_PREVIOUS: random,
      BOOTSTRAP_SECRET_KEY: 'psk_aaaaaaaaaaaaaaaa',
    }
    const findings = examineSecrets(env)
    expect(told(findings)).toEqual([
      'ok: SECRET is long and looks random',
      'ok: SECRET_PREVIOUS is long and looks random',
      expect.stringMatching(/^error: BOOTSTRAP_SECRET_KEY can be guessed/),
      'error: SECRET_PREVIOUS equals SECRET',
    ])
    for (const value of Object.values(env)) expect(JSON.stringify(findings)).not.toContain(value)
  })

  test('a secret during its rotation', () => {
    const SECRET_PREVIOUS = [...random].reverse().join('')
    const findings = examineSecrets({ SECRET: random, SECRET_PREVIOUS })
    expect(told(findings).at(-1)).toMatch(/^warning: SECRET_PREVIOUS is set/)
    // The durations of the documentation.
    for (const lasts of Object.values(rotationLasts)) {
      expect(findings.at(-1)?.advice).toContain(lasts)
      expect(readSource('docs/operations.md')).toContain(`| ${lasts} |`)
    }
  })
})

/** A policy file with these sections, each `name: value`. */
const fileOf = (text: string) => {
  const providers = { box: { kind: 'sandbox' }, mail: { kind: 'smtp' } }
  const { templates, ...file } = policyFileSchema.parse({
    policies: { captcha: [] },
    providers,
    routes: {},
    ...parse(`{ ${text} }`),
  })
  const recipients = { ...file.recipients, refuse: new Set(file.recipients.refuse) }
  return { ...file, recipients, templatesFolder: templates }
}
/** A rule that uses the price of a message, and a file with prices that has only this rule. */
const priced = (fields: string) =>
  `{ name: spend, sliding: 500000 per 24h, permits: price, ${fields} }`
const spending = (fields: string) =>
  `policies: { captcha: [${priced(fields)}] }, prices: { default: 60 }`
const nowMs = Date.UTC(2026, 10, 22)
function policyOf(text: string): string[] {
  const file = fileOf(text)
  const recipients = createTestRecipients(file.testing, {
    defaultCountry: 'CN',
    nowMs: () => nowMs,
  })
  return told(examinePolicy(file, recipients.list().length, (name) => name !== 'nowhere'))
}

describe('policy file', () => {
  test.each([
    ['code: { length: 4 }', /^warning: 4 digits have fewer than the 20 bits/],
    ['code: { length: 6 }', /^ok: 6 digits/],
    ['code: { length: 6, ttl: 11m }', /^warning: a code passes for more than 10 minutes/],
    ['', /^ok: none/],
    [
      'testing: { recipients: [{ to: "a@b.test", code: "0000" }] }',
      /^error: 1 without an end date/,
    ],
    [
      'testing: { recipients: [{ to: "a@b.test", code: "0000" }], until: "2026-11-22" }',
      /^warning: 1 until 2026-11-22/,
    ],
    [
      'testing: { recipients: [{ to: "a@b.test", code: "0000" }], until: "2026-11-21" }',
      /^ok: expired on/,
    ],
    ['', /^warning: no rule limits the cost of a day/],
    [
      'policies: { captcha: [{ name: sends, key: "{app}", sliding: 9 per 24h }] }, prices: { default: 60 }',
      /^warning: no rule limits the cost of a day$/,
    ],
    [
      `policies: { captcha: [${priced('key: "{app}"')}] }`,
      /^warning: a rule has permits: price, but the file has no prices/,
    ],
    [spending('key: "{app}"'), /^ok: the rule spend limits the cost of codes/],
    [spending('key: "{app}:{country}", mode: enforce'), /^ok: the rule spend limits/],
    [spending('key: "{app}", mode: observe'), /^warning: no rule limits .*: spend only observes/],
    [spending('key: "{app}", mode: challenge'), /^warning: .*: spend lets solved challenges pass/],
    [
      spending('key: "{app}", refund: passed'),
      /^warning: .*: spend does not count codes that passed/,
    ],
    [spending('key: "{app}:{to}"'), /^warning: .*: spend has a separate count for each {to}/],
    [
      `policies: { captcha: [], ours: [${priced('key: "{app}"')}] }, prices: { default: 60 }`,
      /^warning: no rule limits the cost of a day$/,
    ],
    [
      `policies: { captcha: [{ include: ours }], ours: [${priced('key: "{app}"')}] }, prices: { default: 60 }`,
      /^ok: the rule spend limits/,
    ],
    [
      `browser: { rules: [${priced('key: "{app}"')}] }, prices: { default: 60 }`,
      /^warning: .*: spend applies to pages only/,
    ],
    ['', /^ok: no SMS is sent/],
    ['routes: { sms: [{ use: [box] }] }', /^warning: SMS may go to every country/],
    ['routes: { sms: [{ use: [box] }] }, recipients: { countries: [CN] }', /^ok: SMS only to CN/],
    [
      'routes: { sms: [{ match: { country: CN }, use: [box] }] }, recipients: { countries: [CN, DE] }',
      /^warning: no route serves DE, which recipients.countries lists$/,
    ],
    [
      'routes: { sms: [{ match: { country: CN }, use: [box] }], voice: [{ use: [box] }] }, recipients: { countries: [CN, DE] }',
      /^ok: SMS, voice only to CN, DE/,
    ],
    [
      'routes: { sms: [{ use: [nowhere] }] }, recipients: { countries: [DE] }',
      /^warning: no route serves DE/,
    ],
  ])('%s', (text, expected) => {
    expect(policyOf(text)).toContainEqual(expect.stringMatching(expected))
  })

  test.each([
    ['none', '', 'spend'],
    ['one that only observes', priced('key: "{app}", mode: observe'), 'spend'],
    ['one of another name', priced('key: "{to}"').replace('spend', 'cost'), 'cost'],
  ])(
    'no rule limits spending, %s: the advised rule can replace the one of its name',
    (_, rule, name) => {
      const textWith = (rules: string) =>
        `policies: { captcha: [${rules}] }, prices: { default: 60 }`
      const [found] = examinePolicy(fileOf(textWith(rule)), 0, () => true).filter(
        ({ subject }) => subject === 'prices',
      )
      const [advised = ''] = /\{ name: .*\}/.exec(found?.advice ?? '') ?? []
      expect(advised).toMatch(`{ name: ${name}, `)
      expect(found?.advice).toMatch(rule ? /^replace it by/ : /^add to captcha/)
      expect(policyOf(textWith(advised))).toContain(`ok: the rule ${name} limits the cost of codes`)
    },
  )

  test.each([
    [0, 'warning'],
    [1, 'ok'],
  ])('TRUST_PROXY_HOPS %d: %s', (hops, state) => {
    expect(examineProxy({ TRUST_PROXY_HOPS: hops })).toMatchObject([{ state }])
  })
})

test.each([
  // 160 characters without the time in it.
  [
    `${'x'.repeat(151)} {{code}} {{validity}}`,
    't/sms.en needs 2 messages, and carriers bill each one',
    'shorten it',
  ],
  [
    `It\u2019s {{code}}. ${'x'.repeat(60)}`,
    't/sms.en needs 2 messages, and carriers bill each one. The GSM 7-bit alphabet lacks "\u2019" (U+2019), so a message has room for 70 characters in place of 160',
    'replace these characters, such as a curved apostrophe by a straight one, or shorten it',
  ],
  [
    `${'您好，欢迎光临'.repeat(11)}{{code}}`,
    't/sms.en needs 2 messages, and carriers bill each one',
    'shorten it',
  ],
])('an SMS template that is too long with its values, %#: %s', (text, what, advice) => {
  const templates = loadTemplates(templatesFolder({ 't/sms.en.txt': text }))
  const findings = examineMessages(fileOf('routes: {}'), templates)
  expect(findings.at(-1)).toMatchObject({ state: 'warning', message: what, advice })
})

test.each([
  [
    'routes: { email: [{ use: [mail] }] }',
    ['warning: no route for sms', 'ok: email: 1 route(s), every message has one'],
  ],
  ['routes: { sms: [{ use: [box] }] }', ['error: sms uses a sandbox, which delivers nothing']],
  [
    'routes: { email: [{ match: { app: a }, use: [mail] }] }',
    ['warning: email: messages that match no route are refused'],
  ],
])('messages: %s', (text, expected) => {
  const all = told(examineMessages(fileOf(text), loadTemplates('templates')))
  for (const each of expected) expect(all).toContain(each)
  expect(all.at(-1)).toBe('ok: every SMS template fits into one message')
})

test('links: none, one that is shown, one that no template shows, one of this machine', () => {
  const shipped = loadTemplates('templates')
  const plain = loadTemplates(templatesFolder({ 'captcha/sms.en.txt': '{{code}}' }))
  const about = (links: string, templates = shipped) =>
    told(examineMessages(fileOf(`routes: {}${links}`), templates)).slice(-1)
  expect(about('')).toEqual(['ok: every SMS template fits into one message'])
  const links = ', links: { signup: https://shop.example }'
  expect(about(links)).toEqual(['ok: the messages of signup open a page with the code'])
  expect(about(links, plain)).toEqual(['warning: no template shows the link of signup'])
  expect(about(', links: { signup: http://localhost }')).toEqual([
    'warning: the link of signup opens only on this machine',
  ])
})

test('messages: one route to phones is enough, and the channels beside it are no findings', () => {
  const all = (routes: string) => told(examineMessages(fileOf(routes), loadTemplates('templates')))
  expect(all('routes: { voice: [{ use: [phone] }] }')).toEqual([
    'warning: no route for email',
    'ok: voice: 1 route(s), every message has one',
    'ok: every SMS template fits into one message',
  ])
  expect(
    all('routes: { sms: [{ use: [phone] }] }, workflows: { signup: [sms, voice, email] }'),
  ).toContain('warning: workflow signup leaves out voice, email: no route')
  expect(all('routes: {}').slice(0, 2)).toEqual([
    'warning: no route for sms',
    'warning: no route for email',
  ])
})

test('messages: an SMS of two parts; a channel without its form of the code', () => {
  const folder = templatesFolder({ 'captcha/sms.en.txt': `{{code}} ${'word '.repeat(40)}` })
  const file = fileOf('routes: { email: [{ use: [mail] }] }')
  expect(told(examineMessages(file, loadTemplates(folder)))).toEqual(
    expect.arrayContaining([
      'error: email has a route, but the template captcha has no email file',
      'warning: captcha/sms.en needs 2 messages, and carriers bill each one',
    ]),
  )
})

test('keys: none, a page without TLS, a page of this machine, all well; revoked ones do not count', () => {
  const key = {
    name: 'shop',
    kind: 'publishable',
    origins: [] as string[],
    isRevoked: false,
    endsSoon: false,
  } as const
  expect(told(examineKeys([{ ...key, isRevoked: true }]))).toEqual(['warning: there is no API key'])
  const plain = examineKeys([
    { ...key, origins: ['https://shop.test', 'http://shop.test', 'http://localhost:5173'] },
  ])
  expect(told(plain)).toEqual([
    'warning: publishable key "shop" may be used by a page without TLS, http://shop.test',
    'warning: publishable key "shop" may be used by a page of this machine, http://localhost:5173',
  ])
  expect(told(examineKeys([{ ...key, endsSoon: true }]))).toEqual([
    'warning: the key "shop" ends within a week',
  ])
  expect(told(examineKeys([{ ...key, origins: ['https://shop.test'] }]))).toEqual([
    'ok: 1 active, no page without TLS',
  ])
})

test.each([
  [0, 'ok: this machine and redis agree'],
  [5_000, 'warning: this machine is 5 s behind redis'],
  [-5_000, 'warning: this machine is 5 s ahead of redis'],
  [600_000, 'error: this machine is 600 s behind redis'],
])('a server that is %d ms ahead', async (aheadMs, expected) => {
  expect(told([await lookAtClock('redis', async () => Date.now() + aheadMs)])).toEqual([expected])
})

test('a server that answers late is not one whose clock differs', async () => {
  vi.useFakeTimers()
  const slow = async (readAfterMs: number) => {
    vi.advanceTimersByTime(readAfterMs)
    const read = Date.now()
    vi.advanceTimersByTime(5_000 - readAfterMs)
    return read
  }
  for (const readAfterMs of [0, 2_500, 5_000]) {
    expect(told([await lookAtClock('redis', () => slow(readAfterMs))])).toEqual([
      'ok: this machine and redis agree',
    ])
  }
  vi.useRealTimers()
})

test('the report: aligned, with what to do below, and counted', () => {
  const findings: Finding[] = [
    { subject: 'redis', state: 'ok', message: 'version 8', advice: 'nothing' },
    { subject: 'postgresql', state: 'error', message: 'is away', advice: 'start it' },
  ]
  expect(reportOf(findings)).toBe(
    [
      'ok       redis       version 8',
      'ERROR    postgresql  is away',
      '                     → start it',
      '',
      '1 ok, 0 warnings, 1 errors',
    ].join('\n'),
  )
})
