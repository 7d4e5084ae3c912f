/**
 * Rules with `permits: price` and the prices of the file: a combination that would be a 500 is a problem at start.
 */
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parsePolicyFile } from '../../src/config/policy-file.ts'
import { createSectionChecks } from '../../src/main/load-config.ts'
import { startPostern } from '../tools/postern.ts'
import { publishableKey } from '../tools/publishable-key.ts'

const path = fileURLToPath(new URL('../../file.yaml', import.meta.url))

async function problemsOf(text: string): Promise<string[]> {
  const rest = '\nproviders: { sandbox: { kind: sandbox } }\nroutes: {}\n'
  const result = await parsePolicyFile(text + rest, path, {}, createSectionChecks())
  return result.ok ? [] : result.problems.map((one) => one.slice(path.length))
}

const spend = '{ name: spend, key: "{app}", sliding: [50 per 1h, 90 per 24h], permits: price }'
const withRule = (rule: string, prices: string) =>
  `${prices}\npolicies:\n  captcha:\n    - ${rule}\n  notice: []\n  check: []`

test.each([
  [
    'a price above a limit',
    'prices: { default: 40, JP: 51 }',
    ['prices.JP is 51, above the limit 50 of this rule, so it could never be sent'],
  ],
  [
    'the default above a limit',
    'prices: { default: 60, CN: 45 }',
    ['prices.default is 60, above the limit 50 of this rule, so it could never be sent'],
  ],
  ['prices that fit', 'prices: { default: 50, CN: 45 }', []],
  ['no prices', '', ['price needs the section prices']],
])('%s', async (_, prices, messages) => {
  expect(await problemsOf(withRule(spend, prices))).toEqual(
    messages.map((message) => `:4: policies.captcha.0.permits: ${message}`),
  )
})

test('a limit of 0 refuses at any price', async () => {
  const never = '{ name: spend, key: "{app}", sliding: 0 per 24h, permits: price }'
  expect(await problemsOf(withRule(never, 'prices: { default: 40 }'))).toEqual([])
})

test('in rules for pages it is reported there', async () => {
  const text = `prices: { default: 60 }\nbrowser:\n  rules:\n    - ${spend}\npolicies: { captcha: [], notice: [], check: [] }`
  expect(await problemsOf(text)).toEqual([
    ':4: browser.rules.0.permits: prices.default is 60, above the limit 50 of this rule, so it could never be sent',
  ])
})

test.each([
  [
    'a field that its requests do not have',
    '{ name: bad, key: "{recipient}", sliding: 9 per 1h }',
    'common.bad: there is no field {recipient} here; there are ',
  ],
  ['a price above its limit', spend, 'common.spend: prices.default is 60, above the limit 50 '],
])('an included rule with %s is reported at the include', async (_, rule, message) => {
  const own = '- { name: own, key: "{to}", sliding: 9 per 1h }'
  const text = `prices: { default: 60 }
policies:
  captcha:
    ${own}
    - include: common
  notice: []
  check: []
  common: [${rule}]
`
  expect(await problemsOf(text)).toEqual([
    expect.stringContaining(`:5: policies.captcha.1.include: ${message}`),
  ])
})

test('rules of sends in checks have no content; rules that only callers of the limiter use have any field', async () => {
  const dedupe = '{ name: duplicate, key: "{dedupe}", fixed: 2 per 60s }'
  const text = `policies:
  captcha: [${dedupe}]
  notice: []
  check: [{ include: captcha }]
  export: [{ name: any, key: "{folder}", sliding: 9 per 1h }]
`
  expect(await problemsOf(text)).toEqual([
    expect.stringMatching(
      /^:4: policies.check.0.include: captcha.duplicate: there is no field \{dedupe\}/,
    ),
  ])
})

test('a policy that a send can name in place of captcha has the fields of sends', async () => {
  const text = `policies:
  captcha: [{ name: all, key: "{to}", sliding: 9 per 1h }]
  notice: []
  check: []
  camara: [{ include: captcha }, { name: own, key: "{client}", sliding: 9 per 1h }]
`
  expect(await problemsOf(text)).toEqual([
    expect.stringMatching(/^:5: policies.camara.1.key: there is no field \{client\} here/),
  ])
})

test('a send takes its price: by country, or the price of mail', async () => {
  const rule = { name: 'spend', key: '{app}', sliding: '200 per 24h', permits: 'price' }
  const postern = await startPostern({
    policyFile: {
      policies: { captcha: [rule], notice: [], check: [] },
      prices: { default: 100, CN: 45, email: 5 },
    },
  })
  const key = await publishableKey(postern.database)
  const send = async (channel: string, to: string) =>
    (await postern.post('/v1/captchas', { channel, to }, { key })).status
  expect(await send('sms', '+4915123456789')).toBe(202)
  expect(await send('sms', '+8613800138000')).toBe(202)
  expect(await send('sms', '+8613800138001')).toBe(202)
  // 10 of 200 are left.
  expect(await send('sms', '+8613800138002')).toBe(429)
  expect(await send('email', 'ada@example.com')).toBe(202)
  expect(await send('email', 'bob@example.com')).toBe(202)
  expect(await send('email', 'eve@example.com')).toBe(429)
})
