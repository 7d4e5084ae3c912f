/** The parts of a recipient that limits count, and the parts that are shown. */
import { expect, test } from 'vitest'
import { Unavailable } from '../../src/base/unavailable.ts'
import { addressKindOf, channelsFor, maskRecipient } from '../../src/recipient/channels.ts'

test('prefix: a number without its last four digits, the domain of an address', () => {
  expect(addressKindOf('sms').prefixOf('+8613800138000')).toBe('+861380013')
  expect(addressKindOf('email').prefixOf('ann@acme.test')).toBe('acme.test')
})

test.each([
  ['ann+shop@acme.test', 'ann@acme.test'],
  ['a.n.n@acme.test', 'a.n.n@acme.test'],
  ['a.n.n+shop@gmail.com', 'ann@gmail.com'],
  ['ann@googlemail.com', 'ann@gmail.com'],
  ['+shop@acme.test', '+shop@acme.test'],
])('mailbox: %s is counted as %s', (address, mailbox) => {
  expect(addressKindOf('email').mailboxOf(address)).toBe(mailbox)
})

test('mailbox: a number is its own', () => {
  expect(addressKindOf('sms').mailboxOf('+8613800138000')).toBe('+8613800138000')
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

test('mask: a channel of a newer Postern shows nothing of its recipient', () => {
  expect(maskRecipient('pigeon', '+8613800138000')).toBe('***')
})

test('a channel of a newer Postern: this process is not able to use its addresses, which is no fault', () => {
  expect(() => addressKindOf('pigeon' as 'sms')).toThrow(Unavailable)
})

const toPhones = ['sms', 'voice', 'whatsapp', 'telegram']
test.each([
  ['ann@acme.test', ['email']],
  ['tel:+86 138 0013 8000', toPhones],
  ['(+49) 151 23456789', toPhones],
  ['+ 49 151 23456789', toPhones],
  ['Ann', []],
])('channels for a text: %s → %j', (text, channels) => {
  expect(channelsFor(text)).toEqual(channels)
})
