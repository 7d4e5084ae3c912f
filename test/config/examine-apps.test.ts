import { expect, test } from 'vitest'
import { examineApps } from '../../src/config/examine-policy.ts'

const policies = {
  captcha: [
    { name: 'all', key: '{to}', sliding: '1 per 60s' },
    { name: 'own', key: '{app}:{to}', sliding: '1 per 60s' },
  ],
  notice: [],
  check: [{ name: 'guesses', key: '{to}:{ip}', lockout: { limit: 3, window: '5m', lock: '15m' } }],
  login: [{ name: 'subject', key: '{subject}', sliding: '1 per 60s' }],
}
const browser = {
  rules: [
    { name: 'page', key: '{keyId}:{ip}', sliding: '1 per 60s' },
    { name: 'pages', key: '{ip}', sliding: '1 per 60s' },
  ],
  checkRules: [
    { name: 'visits', key: '{ip}', sliding: '1 per 60s' },
    { name: 'own', key: '{app}:{ip}', sliding: '1 per 60s' },
  ],
}
const testing = { recipients: [] }
const file = { policies, browser, testing } as unknown as Parameters<typeof examineApps>[0]

test('rules that count all apps together are named where there is more than one', () => {
  expect(examineApps(file, ['shop', 'bank', 'shop'])).toMatchObject([
    {
      state: 'warning',
      message: expect.stringContaining(
        '2 apps share the counts of captcha.all, check.guesses, browser.pages, browser-check.visits,',
      ),
    },
  ])
})

test('one app shares no count; nor do rules that name the app or the key', () => {
  expect(examineApps(file, ['shop', 'shop'])).toMatchObject([{ state: 'ok' }])
  const own = {
    ...file,
    policies: { captcha: [policies.captcha[1]] },
    browser: { rules: [browser.rules[0]], checkRules: [browser.checkRules[1]] },
  }
  expect(examineApps(own as unknown as typeof file, ['shop', 'bank'])).toMatchObject([
    { state: 'ok' },
  ])
})

test('rules of included policies are named by the policy that declares them', () => {
  const { captcha, check } = policies
  const including = { captcha: [{ include: 'common' }], notice: [], check, common: captcha }
  expect(
    examineApps({ ...file, policies: including } as typeof file, ['shop', 'bank']),
  ).toMatchObject([
    { message: expect.stringContaining('share the counts of common.all, check.guesses, ') },
  ])
})
