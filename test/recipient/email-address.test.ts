/** One plain address or none. Bad addresses of callers are in test/http/bad-recipient.test.ts. */
import { expect, test } from 'vitest'
import { readEmailAddress } from '../../src/recipient/mail-address.ts'

test.each([
  ['lower case on both sides', 'Ann.B@Acme.TEST', 'ann.b@acme.test'],
  ['a mailbox of one digit, below a domain of digits', '1@2.3.test', '1@2.3.test'],
  [
    'a domain in Unicode, also decomposed, becomes ASCII',
    'ann@bu\u0308cher.test',
    'ann@xn--bcher-kva.test',
  ],
  ['an invisible sign, as chats add it', 'a\u200bnn@ac\u00adme.test\ufe0f', 'ann@acme.test'],
  ['a wide @', 'ann＠acme.test', 'ann@acme.test'],
  ['the full stops of an East Asian keyboard', 'ann@mail。acme．test｡', 'ann@mail.acme.test'],
  ['a link', 'MailTo:ann@acme.test', 'ann@acme.test'],
  ['the dot of the root, and spaces around', ' ann@acme.test. ', 'ann@acme.test'],
  [
    'every sign that RFC 5322 allows in an atom',
    "!#$%&'*+/=?^_`{|}~-@acme.test",
    "!#$%&'*+/=?^_`{|}~-@acme.test",
  ],
])('%s', (_, text, address) => {
  expect(readEmailAddress(text)).toBe(address)
})

test.each([
  ['no @', 'acme.test'],
  ['nothing before the @', '@acme.test'],
  ['two @', 'ann@b@acme.test'],
  ['a dot at an end of the local part', 'ann.@acme.test'],
  ['a hyphen in front, which a mail program may read as an option', '-ann@acme.test'],
  ['the sign for kelvin, another mailbox than k', '\u212aann@acme.test'],
  ['a sign before the domain', 'ann@ acme.test'],
  ['a link with more than an address', 'mailto:ann@acme.test?cc=bob@acme.test'],
  ['two dots in a row', 'a..b@acme.test'],
  ['letters outside ASCII before the @', 'änn@acme.test'],
  ['a space inside', 'ann@ac me.test'],
  ['a wide full stop before the @', 'ann．b@acme.test'],
  ['a domain of one label', 'ann@localhost'],
  ['an IP address', 'ann@192.0.2.1'],
])('%s: none', (_, text) => {
  expect(readEmailAddress(text)).toBeUndefined()
})

test('64 characters before the @ and 254 in all are the most, counted as they are sent', () => {
  const local = 'a'.repeat(64)
  const domainOf = (length: number) => `${'b'.repeat(60)}.`.repeat(3).padEnd(length, 'c')
  expect(readEmailAddress(`${local}@acme.test`)).toBe(`${local}@acme.test`)
  expect(readEmailAddress(`a${local}@acme.test`)).toBeUndefined()
  expect(readEmailAddress(`aa@${domainOf(251 - 5)}.test`)).toHaveLength(254)
  expect(readEmailAddress(`aaa@${domainOf(251 - 5)}.test`)).toBeUndefined()
  // Shorter as written than in ASCII.
  expect(readEmailAddress(`aa@ü${domainOf(251 - 5).slice(1)}.test`)).toBeUndefined()
})
