/** Allowed destinations: libphonenumber's types of numbers, countries, and domains of mail. */
import { describe, expect, test } from 'vitest'
import {
  createRecipientNormaliser,
  refusedRecipient,
} from '../../src/recipient/normalise-recipient.ts'

const numbers = {
  mobile: '+8613800138000',
  fixed_line_or_mobile: '+12125550100',
  voip: '+445600123456',
  fixed_line: '+442071234567',
  personal_number: '+447012345678',
  toll_free: '+18002345678',
  uan: '+443001234567',
} as const
const never = {
  premium: '+19002345678',
  'shared cost': '+448431234567',
  pager: '+447623456789',
  satellite: '+881612345678',
  'a short code': '+8610086',
  'a number that is not in use': '+8610123456789',
}
type Type = keyof typeof numbers
const kindOf = (rules: Parameters<typeof createRecipientNormaliser>[0], to: string) =>
  createRecipientNormaliser(rules)(to.includes('@') ? 'email' : 'sms', to).kind

describe('types', () => {
  test.each(Object.keys(numbers) as Type[])('%s alone: such numbers and no others', (type) => {
    const kinds = Object.entries(numbers).map(([name, to]) => [name, kindOf({ types: [type] }, to)])
    const expected = Object.keys(numbers).map((name) => [
      name,
      name === type ? 'ok' : 'not_allowed',
    ])
    expect(kinds).toEqual(expected)
  })

  test('no types named: the default types get SMS; a landline gets none', () => {
    const kinds = Object.values(numbers).map((to) => kindOf({}, to))
    expect(kinds).toEqual(['ok', 'ok', 'ok', 'invalid', 'invalid', 'invalid', 'invalid'])
  })

  test('no types named: a landline gets calls too, and nothing else that rings', () => {
    const normalise = createRecipientNormaliser({})
    const kinds = Object.values(numbers).map((to) => normalise('voice', to).kind)
    expect(kinds).toEqual(['ok', 'ok', 'ok', 'ok', 'invalid', 'invalid', 'invalid'])
    const listed = createRecipientNormaliser({ types: ['mobile'] })
    expect(listed('voice', numbers.fixed_line).kind).toBe('not_allowed')
  })

  test.each(Object.entries(never))('%s: never, with anything allowed', (_, to) => {
    expect(kindOf({ types: Object.keys(numbers) as Type[] }, to)).toBe('invalid')
  })

  test.each([
    ['Saint Martin, whose numbers are read as those of Guadeloupe', 'MF', '+590690001234'],
    ['the Isle of Man, in a range that Britain has too', 'IM', '+447924123456'],
    ['Åland', 'AX', '+358412345678'],
    ['Christmas Island', 'CX', '+61412345678'],
  ])('countries: a number that may be of %s is allowed there', (_, country, to) => {
    expect(kindOf({ countries: ['CN', country] }, to)).toBe('ok')
  })

  test.each([
    ['Jersey, for Britain', 'GB', '+447797732133'],
    ['the United States, for Canada', 'CA', '+12125550100'],
    ['Kazakhstan, for Russia', 'RU', '+77012345678'],
    ['the Dominican Republic, for the United States', 'US', '+18092345678'],
  ])('countries: a number that can only be of %s is not', (_, country, to) => {
    expect(kindOf({ countries: [country] }, to)).toBe('not_allowed')
  })

  test('an allowed type in a country that is not: not allowed', () => {
    const rules = { types: ['fixed_line'] as const, countries: ['FR'] }
    expect(kindOf(rules, numbers.fixed_line)).toBe('not_allowed')
    expect(kindOf(rules, '+33123456789')).toBe('ok')
  })
})

test('a refused recipient: before its country and type, also if it would get no SMS anyway; never a test recipient', () => {
  const isRefused = (to: string) => to === numbers.fixed_line || to === 'ada@example.com'
  const normalise = createRecipientNormaliser({ countries: ['CN'] }, undefined, isRefused)
  const reason = (channel: 'sms' | 'email', to: string) => {
    const result = normalise(channel, to)
    return result.kind === 'ok' ? 'ok' : refusedRecipient(result)
  }
  const refused = { outcome: 'destination_not_allowed', reason: 'refused' }
  expect(reason('sms', '+44 20 7123 4567')).toEqual(refused)
  expect(reason('email', 'Ada@Example.com')).toEqual(refused)
  expect(reason('email', 'bob@example.com')).toBe('ok')
  expect(reason('sms', '+442071234568')).toEqual({ outcome: 'invalid_recipient', because: 'type' })
  const tested = createRecipientNormaliser({}, () => true, isRefused)
  expect(tested('sms', numbers.fixed_line).kind).toBe('ok')
  expect(tested('email', 'ada@example.com').kind).toBe('ok')
})

describe('mail.refuse', () => {
  const rules = { mail: { refuse: ['tempmail.test', 'deep.mail.example', 'xn--e1afmkfd.test'] } }

  test.each([
    ['the domain', 'a@tempmail.test', 'not_allowed'],
    ['in capitals', 'A@TempMail.TEST', 'not_allowed'],
    ['one below it', 'a@x.tempmail.test', 'not_allowed'],
    ['far below it', 'a@a.b.c.d.e.f.tempmail.test', 'not_allowed'],
    ['one that ends like it', 'a@mytempmail.test', 'ok'],
    ['one that begins with it', 'a@tempmail.test.example', 'ok'],
    ['above one', 'a@mail.example', 'ok'],
    ['in its own letters', 'a@ПРИМЕР.test', 'not_allowed'],
    ['in full-width letters, which are no letters of a domain', 'a@ｔempmail.test', 'not_allowed'],
    ['the domain as a local part', 'tempmail.test@mail.example', 'ok'],
  ])('%s', (_, to, kind) => {
    expect(kindOf(rules, to)).toBe(kind)
  })

  test('100,000 domains: asked as often as an address has labels', () => {
    const refuse = Array.from({ length: 100_000 }, (_, index) => `d${index}.test`)
    const normalise = createRecipientNormaliser({ mail: { refuse } })
    const addresses = Array.from({ length: 20_000 }, (_, index) => `a@x.d${index * 10}.test`)
    const before = process.threadCpuUsage()
    const kinds = new Set(addresses.map((to) => normalise('email', to).kind))
    // A scan of the list would take a hundred times as long.
    expect(process.threadCpuUsage(before).user / 1_000).toBeLessThan(2_000)
    expect(kinds).toEqual(new Set(['not_allowed', 'ok']))
  })
})

test.each([
  ['email', 'a@tempmail.test', { outcome: 'destination_not_allowed', reason: 'mail' }],
  ['sms', numbers.mobile, { outcome: 'destination_not_allowed', reason: 'country' }],
  ['sms', numbers.fixed_line, { outcome: 'destination_not_allowed', reason: 'type' }],
  ['sms', '13800138000', { outcome: 'invalid_recipient', because: 'no_country' }],
  ['email', 'nobody', { outcome: 'invalid_recipient', because: 'no_address' }],
] as const)('%s to %s as an outcome: %o', (channel, to, outcome) => {
  const rules = {
    countries: ['GB'],
    types: ['mobile'],
    mail: { refuse: ['tempmail.test'] },
  } as const
  const result = createRecipientNormaliser(rules)(channel, to)
  expect(result.kind === 'ok' ? result : refusedRecipient(result)).toEqual(outcome)
})

test('a number without a country: reported as such if no default country is set', () => {
  const result = (rules: Parameters<typeof createRecipientNormaliser>[0], to: string) =>
    createRecipientNormaliser(rules)('sms', to)
  expect(result({}, '138 0013 8000')).toEqual({ kind: 'invalid', because: 'no_country' })
  for (const noNumber of ['+86 12', '+1.....', 'call me']) {
    expect(result({}, noNumber)).toEqual({ kind: 'invalid', because: 'no_number' })
  }
  expect(result({ defaultCountry: 'CN' }, '1.....')).toEqual({
    kind: 'invalid',
    because: 'no_number',
  })
  expect(result({ defaultCountry: 'CN' }, '138 0013 8000').kind).toBe('ok')
})

test('a test recipient may be sent to under any rules', () => {
  const normalise = createRecipientNormaliser({ countries: ['FR'] }, () => true)
  expect(normalise('sms', '+8613800138000').kind).toBe('ok')
})
