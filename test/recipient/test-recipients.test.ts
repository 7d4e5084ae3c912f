import { expect, test } from 'vitest'
import { createRecipientNormaliser } from '../../src/recipient/normalise-recipient.ts'
import { createTestRecipients, warnOfTestRecipients } from '../../src/recipient/test-recipients.ts'

const recipients = [
  { to: '+1 (500) 555-0006', code: '0000' },
  { to: '13800138000', code: '1111' },
  { to: '+15555550100', code: '3333' },
  { to: 'Reviewer@ACME.test', code: '1234' },
]

function open(until?: string, now = '2026-11-22T10:00:00Z') {
  let nowMs = Date.parse(now)
  const tests = createTestRecipients(
    { recipients, until },
    { defaultCountry: 'CN', nowMs: () => nowMs },
  )
  const rules = { defaultCountry: 'CN', countries: ['CN'], mail: { refuse: ['acme.test'] } }
  const normalise = createRecipientNormaliser(rules, tests.isTestRecipient)
  return {
    tests,
    at: (time: string) => {
      nowMs = Date.parse(time)
    },
    codeFor: (channel: 'sms' | 'email', to: string) => {
      const result = normalise(channel, to)
      return result.kind === 'ok' ? tests.codeOf(result.to) : result.kind
    },
  }
}

test.each([
  ['sms', '+15005550006', '0000'],
  ['sms', '001 500 555 0006', '0000'],
  ['sms', '+1-500-555-0006', '0000'],
  ['sms', '+8613800138000', '1111'],
  ['sms', '138 0013 8000', '1111'],
  // libphonenumber knows no country for it, and the number is not in use.
  ['sms', '+1 555 555 0100', '3333'],
  ['email', 'reviewer@acme.test', '1234'],
  ['email', 'REVIEWER@acme.TEST', '1234'],
] as const)('%s %s: a test recipient in every spelling', (channel, to, code) => {
  expect(open().codeFor(channel, to)).toBe(code)
})

test.each([
  ['sms', '+15005550007', 'invalid'],
  ['sms', '+1500555000', 'invalid'],
  ['sms', '+4915112345678', 'not_allowed'],
  ['sms', '+8613800138001', undefined],
  ['email', 'reviewer+1@acme.test', 'not_allowed'],
  ['email', 'reviewer@acme.test.example', undefined],
] as const)('%s %s: beside one, and none itself', (channel, to, outcome) => {
  expect(open().codeFor(channel, to)).toBe(outcome)
})

test('until: to the end of that day in UTC, and then they are recipients like any other', () => {
  const { tests, at, codeFor } = open('2026-12-31')
  at('2026-12-31T23:59:59.999Z')
  expect(codeFor('sms', '+8613800138000')).toBe('1111')
  expect(tests.list()).toHaveLength(4)
  expect(Object.keys(tests.list()[0] ?? {})).toEqual(['channel', 'to'])
  at('2027-01-01T00:00:00.000Z')
  expect(codeFor('sms', '+8613800138000')).toBe(undefined)
  expect(codeFor('sms', '+15005550006')).toBe('invalid')
  expect(codeFor('email', 'reviewer@acme.test')).toBe('not_allowed')
  expect(tests.list()).toEqual([])
})

test('warnOfTestRecipients: masked, at most twenty of them with the number of all, and nothing without one', () => {
  const warnings: unknown[] = []
  const log = { testRecipients: (facts: object) => void warnings.push(facts) }
  const list = Array.from({ length: 21 }, () => ({ channel: 'sms' as const, to: '+8613800138000' }))
  warnOfTestRecipients([], undefined, log)
  expect(warnings).toEqual([])
  warnOfTestRecipients(list, undefined, log)
  warnOfTestRecipients(list.slice(0, 1), '2026-12-31', log)
  expect(warnings).toEqual([
    { count: 21, recipients: Array(20).fill('+8613****8000'), until: 'for ever' },
    { count: 1, recipients: ['+8613****8000'], until: '2026-12-31' },
  ])
})
