import { expect, test } from 'vitest'
import { addressKindOf } from '../../src/recipient/channels.ts'

const [phone, mail] = [addressKindOf('sms'), addressKindOf('email')]

const number = ['+8613800138000', '138 0013 8000']
const address = ['ada@xn--bcher-kva.example', 'Ada@Bücher.example']

test.each([
  ['with its country', '+8613800138000'],
  ['without it', 'called from 13800138000'],
  ['with separators', '(0) 138-0013.8000'],
  ['its last eight digits', '0013 8000'],
  ['in full width', '１３８００１３８０００'],
  ['in Arabic digits', '١٣٨٠٠١٣٨٠٠٠'],
  ['in Devanagari digits', '१३८००१३८०००'],
  ['in mathematical digits', '𝟙𝟛𝟠𝟘𝟘𝟙𝟛𝟠𝟘𝟘𝟘'],
  ['in digits of several scripts', '138٠٠१३８𝟘00'],
])('a number %s', (_, text) => {
  expect(phone.isNamedIn(text, number)).toBe(true)
})

test.each([
  ['as it is kept', 'mail of ada@xn--bcher-kva.example'],
  ['as it was given', 'mail of Ada@Bücher.example'],
  ['in capitals', 'ADA@XN--BCHER-KVA.EXAMPLE'],
  ['in capitals and Unicode', 'ADA@BÜCHER.EXAMPLE'],
  ['with the umlaut in two parts', 'ada@bu\u0308cher.example'],
  ['in full width', 'ａｄａ＠ｂücher．ｅxample'],
  ['with a Chinese full stop', 'ada@bücher。example'],
  ['with spaces', 'ada @ bücher.example'],
  ['with a space nobody sees', 'ada\u200b@bücher.example'],
])('an address %s', (_, text) => {
  expect(mail.isNamedIn(text, address)).toBe(true)
  expect(mail.isNamedIn(text, address.slice(0, 1))).toBe(true)
})

test.each([
  ['of Iceland, seven digits', '+3545812345', 'rang 581 2345 today'],
  ['of Estonia, seven digits', '+3726001234', '600-1234'],
  ['of Andorra, six digits', '+376312345', 'mobile 312 345'],
  ['of the Falklands, five digits', '+50051234', 'call 51234'],
  ['of eight digits', '+4521234567', '21 23 45 67'],
])('a national number %s', (_, to, text) => {
  expect(phone.isNamedIn(text, [to])).toBe(true)
  expect(
    phone.isNamedIn(
      text.replace(/\d/, (digit) => String(9 - Number(digit))),
      [to],
    ),
  ).toBe(false)
})

test('others are not meant', () => {
  expect(phone.isNamedIn('ticket 4711 of 2026-11-22, 客户来电', number)).toBe(false)
  expect(phone.isNamedIn('+8613800138001', number)).toBe(false)
  expect(mail.isNamedIn('adam at Bücher', address)).toBe(false)
})

test('every digit of Unicode has its value', () => {
  const all = Array.from({ length: 0x1_10_00 + 0x1_00_00 }, (_, point) => point)
    .filter((point) => point < 0xd800 || point > 0xdfff)
    .map((point) => String.fromCodePoint(point))
    .filter((char) => /\p{Nd}/u.test(char))
  expect(all.length % 10).toBe(0)
  for (let from = 0; from < all.length; from += 10) {
    expect(phone.isNamedIn(all.slice(from, from + 10).join(''), ['0123456789'])).toBe(true)
  }
})
