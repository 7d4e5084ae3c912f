/** The parts of a recipient that limits count, and the parts that are shown. */
import { expect, test } from 'vitest'
import { maskRecipient } from '../../src/recipient/mask-recipient.ts'
import { mailboxOf, prefixOf } from '../../src/recipient/normalise-recipient.ts'

test('prefix: a number without its last four digits, the domain of an address', () => {
  expect(prefixOf('sms', '+8613800138000')).toBe('+861380013')
  expect(prefixOf('email', 'ann@acme.test')).toBe('acme.test')
})

test.each([
  ['ann+shop@acme.test', 'ann@acme.test'],
  ['a.n.n@acme.test', 'a.n.n@acme.test'],
  ['a.n.n+shop@gmail.com', 'ann@gmail.com'],
  ['ann@googlemail.com', 'ann@gmail.com'],
  ['+shop@acme.test', '+shop@acme.test'],
])('mailbox: %s is counted as %s', (address, mailbox) => {
  expect(mailboxOf('email', address)).toBe(mailbox)
})

test('mailbox: a number is its own', () => {
  expect(mailboxOf('sms', '+8613800138000')).toBe('+8613800138000')
})

test.each([
  ['email', 'ann@acme.test', 'a***@acme.test'],
  ['sms', '+8613800138000', '+8613****8000'],
  ['sms', '+4712345678', '+47****5678'],
  ['sms', '+290 1234'.replace(' ', ''), '+2****34'],
  ['sms', '+12345', '+1****'],
])('mask: %s %s is shown as %s, and hides four digits at least', (channel, to, shown) => {
  expect(maskRecipient(channel, to)).toBe(shown)
})
