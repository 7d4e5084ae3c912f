import { expect, test } from 'vitest'
import { faultWithoutQuotes, withoutQuotes } from '../../src/delivery/read-result.ts'

const sms = {
  to: '+8613800138000',
  text: 'Your code is 004217. It is valid for 5 minutes.\nNever share it.',
  variables: { code: '004217', minutes: '5', validity: '5 minutes', name: 'Ada Lovelace' },
}
const mail = { to: 'Ada.L@example.com', text: 'Hello', variables: {} }

test.each([
  ['as it is written here', 'no such number: +8613800138000', 'no such number: ***'],
  ['without its plus', 'error 7 for 8613800138000', 'error 7 for ***'],
  ['without its country', 'error 7 for 13800138000!', 'error 7 for ***!'],
  ['with separators', 'error 7 for +86 138-0013-8000.', 'error 7 for ***'],
  ['in an address', 'GET /send?to=%2B8613800138000&x', 'GET /send?to=%2B***&x'],
  ['twice', '13800138000 is 13800138000', '*** is ***'],
  ['its code', 'template {"code":"004217"}', 'template {"code":"***"}'],
  ['a variable, in another case', 'for ADA LOVELACE', 'hidden, because it quotes the message'],
  ['a variable', 'for Ada Lovelace', 'for ***'],
  [
    'a part of the text',
    'bad text: "is valid for 5 minutes"',
    'hidden, because it quotes the message',
  ],
])('a number or its message, %s: hidden', (_, text, expected) => {
  expect(withoutQuotes(text, sms)).toBe(expected)
})

test.each([
  ['550 5.1.1 <Ada.L@example.com>: unknown', '550 5.1.1 <***>: unknown'],
  ['550 <ada.l@example.com> unknown', '550 <***> unknown'],
  ['550 <ADA.L@EXAMPLE.COM> unknown', 'hidden, because it quotes the message'],
])('an address: %s', (text, expected) => {
  expect(withoutQuotes(text, mail)).toBe(expected)
})

test.each([
  'twilio 21211',
  'acme 5 minutes',
  'isv.MOBILE_NUMBER_ILLEGAL (request 20261123-0042-8000)',
  '451 4.7.1 try again in 300 s',
  'Your code',
  '',
])('nothing of the message: %s', (text) => {
  expect(withoutQuotes(text, sms)).toBe(text)
})

test('I21: a text of 10 kB and an answer that repeats its beginning take a few milliseconds', () => {
  const text = 'a'.repeat(10_000)
  const before = process.cpuUsage()
  withoutQuotes(`${'a'.repeat(19)}b`.repeat(100), { ...sms, text })
  const { user, system } = process.cpuUsage(before)
  expect((user + system) / 1_000).toBeLessThan(500)
})

test('a fault: its message without quotes, with the frames of its stack; a value that cannot be read is an Error too', () => {
  const fault = faultWithoutQuotes(new RangeError('to 8613800138000\nand "004217"'), sms)
  expect(fault).toMatchObject({ name: 'RangeError', message: 'to ***and "***"' })
  expect(fault.stack).toMatch(/^RangeError: to \*\*\*and "\*\*\*"\n {4}at .*without-quotes\.test/)
  expect(faultWithoutQuotes('for Ada Lovelace', sms).message).toBe('for ***')
  const unreadable = Object.create(null)
  expect(faultWithoutQuotes(unreadable, sms).message).toMatch(/cannot be read/)
  const hostile = Object.defineProperty(new Error(''), 'message', {
    get() {
      throw new Error('inside')
    },
  })
  expect(faultWithoutQuotes(hostile, sms).message).toMatch(/cannot be read/)
})
