import { describe, expect, test } from 'vitest'
import { checkSms, countries, rulesOf, withoutWebOtp } from '../../src/sms-rules/index.ts'
import { differenceOf, untaggedIn } from '../../src/sms-rules/registered-text.ts'
import { hasPart, kindOfSender } from '../../src/sms-rules/text-parts.ts'

const found = (sms: Parameters<typeof checkSms>[0]) =>
  checkSms(sms).map(({ rule, severity }) => `${severity} ${rule}`)

describe('a finding', () => {
  test('names the rule, what happens, where to file it, the source and its day', () => {
    const [finding] = checkSms({ country: 'AU', sender: 'ACME' })
    expect(finding).toMatchObject({
      ...{ about: 'sender', is: 'replaced', severity: 'warning', rule: 'sender.alphanumeric' },
      message: expect.stringMatching(
        /^Australia: a name must be registered .* people see Unverified in its place\. Where to file it: ACMA .*\(https:.*\)\.$/,
      ),
      source: expect.stringMatching(/^https:/),
      read: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
    })
  })

  test('a country without rules, and a message without sender and text, have none', () => {
    expect(checkSms({ country: 'AQ', sender: 'INFO', text: 'https://a.test' })).toEqual([])
    expect(checkSms({ country: '__proto__', sender: 'INFO' })).toEqual([])
    expect(countries().flatMap((country) => checkSms({ country }))).toEqual([])
    expect(rulesOf('aq')).toBeUndefined()
    expect(rulesOf('../AU')).toBeUndefined()
  })
})

describe('the registered text of India', () => {
  const sms = { country: 'IN', sender: 'ACMEIN', registered: { sender: true } }
  const text = 'ACMEIN: 4711 is your code for {{shop}}.'

  test('one with a type at each variable, and a text that fits it → nothing', () => {
    const template = 'ACMEIN: {#numeric#} is your code for {#alphanumeric#}.'
    expect(found({ ...sms, text, template })).toEqual([])
  })

  test('without a type, with an unknown type, with other words, with a value of another type, or not registered → refused', () => {
    const refused = (template: string | undefined) => found({ ...sms, text, template })
    expect(refused('ACMEIN: {#var#} is your code for {#var#}.')).toEqual(['error template.tags'])
    expect(refused('ACMEIN: {#number#} is your code for {#url#}.')).toEqual(['error template.tags'])
    expect(refused('ACMEIN: {#numeric#} is the code for {#url#}.')).toEqual(['error template.text'])
    expect(found({ ...sms, text: 'ACMEIN: a b', template: 'ACMEIN: {#numeric#}' })).toEqual([
      'error template.text',
    ])
    expect(refused(undefined)).toEqual(['error template'])
  })

  test('differenceOf: spaces at ends and line breaks do not count, signs of regular expressions are text', () => {
    expect(differenceOf('a\n(4711)? ', ' a ({#numeric#})?')).toBeUndefined()
    expect(differenceOf('a 4711 b', 'a {#numeric#}')).toMatch(/more than/)
    expect(differenceOf('a 4711', 'a {1} b')).toMatch(/lacks "b"/)
    expect(untaggedIn('{#numeric#} {1}', ['numeric'])).toBe('{1}')
  })
})

test('a WebOTP line where links are blocked → a warning with its line, and none without the line', () => {
  const text = 'RM0.00 ACME: 4711 is your code\n\n@acme.example #4711'
  const [finding, ...others] = checkSms({ country: 'MY', text })
  expect(finding).toMatchObject({ rule: 'text.webOtp', severity: 'warning', is: 'risky', line: 3 })
  expect(others).toEqual([])
  expect(checkSms({ country: 'MY', text: withoutWebOtp(text) })).toEqual([])
  expect(checkSms({ country: 'DE', text })).toEqual([])
})

describe('parts of a text', () => {
  test.each([
    ['link', 'see https://a.example/x', 'see www.acme.de', 'acme.com', 'acme.de/x', 'bit.ly/abc'],
    ['shortLink', 'https://bit.ly/abc', 't.co/x'],
    ['phoneNumber', '+60 3-1234 5678', 'call 0171 1234567', '212 555 0123'],
    ['emailAddress', 'a.b@acme.de'],
    ['webOtp', 'your code is 4711\n@acme.example #4711', 'x\n@a.example #1 @b.example'],
    ['emoji', 'hello 🎉', '❤️'],
    ['nonGsm', '你好', '“curved”'],
  ] as const)('%s is seen', (part, ...texts) => {
    expect(texts.filter((text) => !hasPart(text, part))).toEqual([])
  })

  test.each([
    ['link', '4711 is your code.', 'a.b@acme.com', 'e.g. 4711', 'x\n@acme.com #4711', 'ok.Bye'],
    ['shortLink', 'https://habit.ly/a', 'not.co'],
    ['phoneNumber', '4711 is your code', '1234567890', '2026-11-27'],
    ['emailAddress', '@acme.example #4711'],
    ['webOtp', '@acme.example #4711 is it'],
    ['emoji', '4711 # © *'],
    ['nonGsm', 'Äé€ [4711]'],
  ] as const)('%s is not seen where it is not', (part, ...texts) => {
    expect(texts.filter((text) => hasPart(text, part))).toEqual([])
  })

  test('a word is a whole one, where a language has spaces', () => {
    expect(hasPart('the Casino.', 'word', ['casino'])).toBe(true)
    expect(hasPart('occasion', 'word', ['casino', 'cas'])).toBe(false)
    expect(hasPart('请来赌场玩', 'word', ['赌场'])).toBe(true)
  })

  test('kinds of senders', () => {
    const kinds = [
      'ACME',
      '+1 (212) 555-0123',
      '72345',
      '+18885550123',
      '+448001234567',
      'A1',
      '100',
    ]
    expect(kinds.map(kindOfSender)).toEqual([
      ...['alphanumeric', 'long', 'short', 'tollFree', 'tollFree', 'alphanumeric', 'short'],
    ])
  })
})

test('a registered text of many variables, and a text that is another → compared at once', () => {
  const template = Array.from({ length: 12 }, (_, index) => `{${index + 1}}`).join(' ')
  const sms = { country: 'CN', text: `【安可美】${'a '.repeat(700)}`, registered: {} }
  const rulesOf = (text: string) => checkSms({ ...sms, template: text }).map(({ rule }) => rule)
  expect(rulesOf(`【安可美】${template}!`)).toEqual(['template.text'])
  expect(rulesOf(`【安可美】${template}`)).toEqual([])
})

test.each([
  ['{#alphanumeric#}', 'a'.repeat(40), true],
  ['{#alphanumeric#}', 'a'.repeat(41), false],
  ['{#alphanumeric#}{#alphanumeric#}', 'a'.repeat(80), true],
  ['{#alphanumeric#}{#alphanumeric#}', 'a'.repeat(81), false],
  ['{#numeric#} {#numeric#}', '12 34', true],
  ['{#numeric#}{#numeric#}', '1', false],
  ['{#cbn#} {#numeric#}', '+91 22 1 5', true],
  ['{#url#} now', '{{link}} now', true],
])('the registered text %s and the text %s → the same: %s', (template, text, isSame) => {
  const found = checkSms({ country: 'IN', text, template, registered: { link: true } })
  expect(found.every(({ about }) => about !== 'template')).toBe(isSame)
})

test('a word of a forbidden subject, or a name that one vendor calls general → no error, because such messages arrive too', () => {
  const errors = (sms: Parameters<typeof checkSms>[0]) =>
    checkSms(sms).filter(({ severity }) => severity === 'error')
  expect(errors({ country: 'ZA', text: 'ACME: 4711 opens your account for cannabis' })).toEqual([])
  expect(errors({ country: 'HK', text: 'ACME: 4711 is the code of your loan' })).toEqual([])
  expect(errors({ country: 'PL', sender: 'PLAYSPORT' })).toEqual([])
  expect(errors({ country: 'GB', sender: 'ACME.CO' })).toEqual([])
  expect(errors({ country: 'DE', sender: 'ACMECOMPANYX' })).toHaveLength(1)
})
