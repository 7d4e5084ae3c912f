import { expect, test } from 'vitest'
import { parsePolicies } from '../../src/limiter/index.ts'
import { withTestPolicies } from '../../src/rules/policies-in-force.ts'

const rule = (name: string, key: string, more = {}) => ({
  name,
  key,
  sliding: '9 per 60s',
  ...more,
})

test('policies of test recipients: the rules without the recipient, of included policies too', () => {
  const shared = [rule('shared-ip', '{ip}'), rule('shared-to', 'x:{to}')]
  const captcha = [
    rule('to', '{channel}:{to}'),
    rule('mailbox', '{mailbox}'),
    rule('prefix', '{prefix}'),
    rule('country', '{app}:{country}'),
    rule('dedupe', '{dedupe}'),
    rule('spend', '{app}', { permits: 'price' }),
    rule('ip', '{ip}'),
    rule('template', '{template}', { permits: 2 }),
  ]
  const all = withTestPolicies({
    shared,
    captcha,
    notice: [{ include: 'shared' }, rule('key', '{keyId}')],
    check: [],
    browser: [{ include: 'captcha' }, rule('page', '{ip}')],
  })
  expect(parsePolicies(all)).toMatchObject({ ok: true })
  const names = Object.entries(all).flatMap(([policy, rules]) =>
    policy.endsWith('-test')
      ? [[policy, rules.map((each) => ('name' in each ? each.name : ''))]]
      : [],
  )
  expect(Object.fromEntries(names)).toEqual({
    'captcha-test': ['ip', 'template'],
    'notice-test': ['shared-ip', 'key'],
    'browser-test': ['ip', 'template', 'page'],
  })
})
