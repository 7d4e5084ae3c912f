import { expect, test } from 'vitest'
import { createSecrets } from '../../src/crypto/secrets.ts'
import type { Limiter } from '../../src/limiter/index.ts'
import { createQuota } from '../../src/rules/quota.ts'

const quota = createQuota({
  limiter: {} as Limiter,
  dedupeHash: createSecrets('a secret of at least thirty-two bytes').dedupeHash,
  priceOf: (channel, country) => (channel === 'sms' && country === 'CN' ? 45 : 60),
  isTestRecipient: () => false,
  policies: () => ({}),
})
const draft = {
  app: 'app',
  kind: 'notice',
  channel: 'sms',
  to: '+8613800138000',
  template: 'order',
  locale: 'en',
  ttlMs: 1_000,
} as const
const origin = { ip: '192.0.2.1', country: 'CN', keyId: 'key', isPage: false }
const dedupe = (more = {}, params: Record<string, string | number | boolean> = { a: 1, b: 'x' }) =>
  quota.fieldsOf({ ...draft, ...more }, params, origin).dedupe

test('{dedupe}: the same for the same recipient, template and variables, in any order and as text or number', () => {
  expect(dedupe()).toMatch(/^[0-9a-f]{32}$/)
  expect(dedupe({}, { b: 'x', a: '1' })).toBe(dedupe())
})

test.each([
  ['template', { template: 'other' }, undefined],
  ['recipient', { to: '+8613800138001' }, undefined],
  ['variable', {}, { a: 1, b: 'y' }],
  ['name of a variable', {}, { a: 1, c: 'x' }],
  ['number of variables', {}, { a: 1 }],
])('{dedupe}: another for another %s', (_, more, params) => {
  expect(dedupe(more, params)).not.toBe(dedupe())
})

test('fieldsOf: every field a rule may name, the scene of a notice empty', () => {
  expect(quota.fieldsOf({ ...draft, scene: 'login' }, {}, origin)).toMatchObject({
    to: '+8613800138000',
    channel: 'sms',
    scene: 'login',
    app: 'app',
    template: 'order',
    ip: '192.0.2.1',
    country: 'CN',
    keyId: 'key',
    prefix: '+861380013',
    block: '+861380013',
    ipWide: '192.0.2.1',
    mailbox: '+8613800138000',
    price: 45,
  })
  expect(quota.fieldsOf(draft, {}, origin).scene).toBe('')
})

test('fieldsOf: a block of numbers; of a mail its mailbox, not its domain; and the network of an IPv6 address', () => {
  const mail = { ...draft, channel: 'email', to: 'a.da+x@gmail.com' } as const
  const fields = quota.fieldsOf(mail, {}, { ...origin, ip: '2001:db8:1:2::/64', country: '' })
  expect(fields).toMatchObject({
    prefix: 'gmail.com',
    block: 'ada@gmail.com',
    mailbox: 'ada@gmail.com',
    ipWide: '2001:db8:1::/48',
  })
})

test('close waits for releases under way', async () => {
  const held = Promise.withResolvers<boolean>()
  const limiter = { release: () => held.promise } as unknown as Limiter
  const closing = createQuota({
    limiter,
    dedupeHash: createSecrets('a secret of at least thirty-two bytes').dedupeHash,
    priceOf: () => 0,
    isTestRecipient: () => false,
    policies: () => ({}),
  })
  closing.release('captcha', {}, 'request')
  let isClosed = false
  const closed = closing.close().then(() => {
    isClosed = true
  })
  await new Promise(setImmediate)
  expect(isClosed).toBe(false)
  held.reject(new Error('Redis is away'))
  await closed
})

test('acquireAndRelease: an admitted request is given back under its own id; a refusal is returned and nothing given back', async () => {
  const refusal = { admitted: false, rule: 'r' }
  const calls: unknown[] = []
  let decision: object = { admitted: true }
  const limiter = {
    async acquire(_policy: string, _fields: object, { requestId }: { requestId: string }) {
      calls.push(['acquire', requestId])
      return decision
    },
    release: async (_policy: string, _fields: object, requestId: string) =>
      void calls.push(['release', requestId]),
  } as unknown as Limiter
  const asked = createQuota({
    limiter,
    dedupeHash: createSecrets('a secret of at least thirty-two bytes').dedupeHash,
    priceOf: () => 0,
    isTestRecipient: () => false,
    policies: () => ({}),
  })
  expect(await asked.acquireAndRelease('captcha', {}, true)).toBeUndefined()
  const [[, id]] = calls as [[string, string]]
  expect(calls).toEqual([
    ['acquire', id],
    ['release', id],
  ])
  decision = refusal
  expect(await asked.acquireAndRelease('captcha', {}, true)).toBe(refusal)
  expect(calls).toHaveLength(3)
})

test('records: decisions and releases, but none of a test recipient; giving back single rules is no release', async () => {
  const asked: unknown[] = []
  const recorded: unknown[] = []
  const limiter = {
    acquire: async (policy: string, _: object, options: object) => {
      asked.push([policy, options])
      return { admitted: true }
    },
    release: async (policy: string) => void asked.push(policy),
    recall: (policy: string, _: object, options: object) => void asked.push([policy, options]),
  } as unknown as Limiter
  const { acquire, release, remembersRefusal } = createQuota({
    limiter,
    dedupeHash: () => '',
    priceOf: () => 0,
    isTestRecipient: (to) => to === '+15005550006',
    policies: () => ({ 'captcha-test': [], 'check-test': [] }),
    onDecided: ({ policy, requestId }) => recorded.push(['decided', policy, requestId]),
    onReleased: (_, requestId) => recorded.push(['released', requestId]),
  })
  const [person, tester] = [
    { channel: 'sms', to: draft.to },
    { channel: 'sms', to: '+15005550006' },
  ]
  await acquire('captcha', person, 'a')
  await acquire('captcha', tester, 'b', false, true)
  release('captcha', person, 'a', ['one rule'])
  release('captcha', tester, 'b')
  release('check', tester, 'c')
  release('of an operator', tester, 'd')
  release('captcha', person, 'a')
  remembersRefusal('notice', person, true)
  expect(recorded).toEqual([
    ['decided', 'captcha', 'a'],
    ['released', 'a'],
  ])
  const [byDefault, asGiven] = [
    { requestId: 'a', isNewRequest: true, isSolved: true, isSilent: false },
    { requestId: 'b', isNewRequest: true, isSolved: false, isSilent: true },
  ]
  expect(asked).toEqual([
    ['captcha', byDefault],
    ['captcha-test', asGiven],
    'captcha',
    'captcha-test',
    'check',
    'of an operator',
    'captcha',
    ['notice', { isSolved: true }],
  ])
})
