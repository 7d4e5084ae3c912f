import { describe, expect, test } from 'vitest'
import { createRecipientNormaliser } from '../../src/recipient/normalise-recipient.ts'
import { startPostern } from '../tools/postern.ts'
import { badRecipient, badRequest, expectRefused } from './ledger.ts'

const postern = await startPostern({
  policyFile: { recipients: { defaultCountry: 'CN', countries: ['CN', 'GB', 'US', 'DE'] } },
})
const normaliseRecipient = createRecipientNormaliser({})
const notAllowed = { status: 403, code: 'destination_not_allowed' }

const phones: [string, { status: number; code: string }, string][] = [
  ['too short', badRecipient, '+86138'],
  ['too long', badRecipient, '+86138001380001'],
  ['of words', badRecipient, 'call me'],
  ['full-width', badRecipient, '＋８６１３８００１３８０００'],
  ['of Arabic digits', badRecipient, '+٨٦١٣٨٠٠١٣٨٠٠٠'],
  ['with a trailing newline', badRequest, '+8613800138000\n'],
  ['with another header', badRequest, '+8613800138000\r\nBcc: +8613900139000'],
  ['with a line separator', badRequest, '+8613800138000\u2028'],
  ['with a direction mark', badRequest, '\u202e+8613800138000'],
  ['with a no-break space', badRecipient, '+86\u00a013800138000'],
  ['with markup', badRecipient, '<script>+8613800138000</script>'],
  ['with an extension', badRecipient, '+8613800138000 ext 5'],
  ['with a short extension', badRecipient, '+8613800138000x5'],
  ['with an extension by RFC 3966', badRecipient, '+8613800138000;ext=5'],
  ['two, by comma', badRecipient, '+8613800138000,+8613900139000'],
  ['two, by semicolon', badRecipient, '+8613800138000;+8613900139000'],
  ['two, by space', badRecipient, '+8613800138000 13900139000'],
  ['two, by slash', badRecipient, '+8613800138000/13900139000'],
  ['with a second one behind a slash', badRecipient, '+8613800138000/12'],
  ['as a link with parameters', badRecipient, 'tel:+8613800138000;ext=5'],
  ['as another link', badRecipient, 'sms:+8613800138000'],
  ['with two plus signs', badRecipient, '++8613800138000'],
  ['with a plus inside', badRecipient, '+86+13800138000'],
  ['a short code', badRecipient, '10086'],
  ['a short code with country code', badRecipient, '+8610086'],
  ['an emergency number', badRecipient, '110'],
  ['a landline', badRecipient, '+861062554433'],
  ['premium', badRecipient, '+19002345678'],
  ['toll-free', badRecipient, '+18002345678'],
  ['shared-cost', badRecipient, '+448431234567'],
  ['satellite', badRecipient, '+881612345678'],
  ['maritime satellite', badRecipient, '+870773111632'],
  ['international premium', badRecipient, '+979123456789'],
  ['of no country', badRecipient, '+999123456789'],
  ['not an allowed country', notAllowed, '+81 90 1234 5678'],
  ['not an allowed country behind the same code', notAllowed, '+1 876 210 1234'],
  ['10 kB of digits', badRequest, '1'.repeat(10_000)],
]

describe('phone', () => {
  test.each(phones)('%s: refused, nothing used', async (_, expected, to) => {
    await expectRefused(postern, expected, () =>
      postern.post('/v1/captchas', { channel: 'sms', to }),
    )
  })

  test.each(phones)('%s: refused by a check too, no try taken', async (_, expected, to) => {
    const body = { channel: 'sms', to, code: '0000' }
    await expectRefused(postern, expected, () => postern.post('/v1/captchas/check', body))
  })

  const spellings = [
    '+8613800138000',
    '+86 138 0013 8000',
    '+86-138-0013-8000',
    '+86.138.0013.8000',
    '+86 (138) 00138000',
    '+86138-0013 8000',
    '008613800138000',
    '0086 138 0013 8000',
    '13800138000',
    '138 0013 8000',
    '(138)00138000',
    ' tel:+86-138-0013-8000 ',
    '138\u200b0013\ufe0d8000',
    '138/0013 8000',
    '8613800138000',
  ]

  test('fifteen spellings of one number are one limit key: one is admitted, fourteen are limited', async () => {
    const replies = []
    for (const to of spellings)
      replies.push(await postern.post('/v1/captchas', { channel: 'sms', to }))
    expect(replies.map(({ status }) => status)).toEqual([202, ...Array(14).fill(429)])
    for (const { body } of replies.slice(1))
      expect(body).toMatchObject({ rule: 'recipient', window: '60s' })
    expect(replies[0]?.body.to).toBe('+8613****8000')
    await postern.codeFor('+8613800138000')
    expect(await postern.messages('+8613800138000')).toHaveLength(1)
  })

  test('a code sent to one spelling passes with another', async () => {
    const { body } = await postern.post('/v1/captchas', { channel: 'sms', to: '+44 7400 123456' })
    const code = await postern.codeFor(body.id)
    const check = { channel: 'sms', to: '0044 (7400) 123-456', code }
    expect((await postern.post('/v1/captchas/check', check)).status).toBe(200)
  })

  test('a notice is found under every spelling of its number', async () => {
    const search = { channel: 'sms', to: '138 0013 8000' }
    const { status, body } = await postern.post('/v1/notices/search', search)
    expect(status).toBe(200)
    expect(body.items).toHaveLength(1)
  })

  test('a number of a country that is no longer allowed can still be searched for', async () => {
    const search = { channel: 'sms', to: '+819012345678' }
    expect(await postern.post('/v1/notices/search', search)).toMatchObject({
      status: 200,
      body: { items: [] },
    })
  })
})

const plain = (local: string) => `${local}@example.com`
const emails: [string, { status: number; code: string }, string][] = [
  ['no address', badRecipient, 'ada'],
  ['no local part', badRecipient, '@example.com'],
  ['no domain', badRecipient, 'ada@'],
  ['two at signs', badRecipient, 'ada@b@example.com'],
  ['a list by comma', badRecipient, 'ada@example.com,eve@example.com'],
  ['a list by comma and space', badRecipient, 'ada@example.com, eve@example.com'],
  ['a list by semicolon', badRecipient, 'ada@example.com;eve@example.com'],
  ['a list by space', badRecipient, 'ada@example.com eve@example.com'],
  ['a group', badRecipient, 'all: ada@example.com, eve@example.com;'],
  ['CRLF', badRequest, 'ada@example.com\r\nBcc: eve@example.com'],
  ['trailing newline', badRequest, 'ada@example.com\n'],
  ['an SMTP command', badRequest, 'ada@example.com>\r\nRCPT TO:<eve@example.com'],
  ['angle brackets', badRecipient, '<ada@example.com>'],
  ['a display name', badRecipient, 'Ada <ada@example.com>'],
  ['a comment', badRecipient, 'ada(comment)@example.com'],
  ['a quoted local part', badRecipient, '"ada lovelace"@example.com'],
  ['the sign for kelvin, which in lower case is a k', badRecipient, '\u212aelvin@example.com'],
  ['a quoted pair', badRecipient, 'ada\\@eve@example.com'],
  ['an IP literal', badRecipient, 'ada@[127.0.0.1]'],
  ['an IPv6 literal', badRecipient, 'ada@[IPv6:::1]'],
  ['an IP address', badRecipient, 'ada@127.0.0.1'],
  ['an IP address in one number', badRecipient, 'ada@2130706433'],
  ['one label', badRecipient, 'ada@localhost'],
  ['two dots at the end', badRecipient, 'ada@example.com..'],
  ['as a link with a subject', badRecipient, 'mailto:ada@example.com?subject=x'],
  ['an empty label', badRecipient, 'ada@example..com'],
  ['a label that begins with -', badRecipient, 'ada@-example.com'],
  ['a last label that begins with -', badRecipient, 'ada@example.-com'],
  ['a last label that ends with -', badRecipient, 'ada@example.com-'],
  ['a label of 64', badRecipient, `ada@${'a'.repeat(64)}.com`],
  ['an underscore in the domain', badRecipient, 'ada@exa_mple.com'],
  ['a percent sign in the domain', badRecipient, 'ada@exam%70le.com'],
  ['a leading -', badRecipient, plain('-ada')],
  ['a leading dot', badRecipient, plain('.ada')],
  ['a trailing dot in the local part', badRecipient, plain('ada.')],
  ['two dots', badRecipient, plain('ada..l')],
  ['a space', badRecipient, plain('a da')],
  ['NUL', badRequest, plain('ada\0')],
  ['a local part of 65', badRecipient, plain('a'.repeat(65))],
  [
    'an address of 255',
    badRecipient,
    `${'a'.repeat(60)}@${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(62)}.com`,
  ],
  ['a local part that is not ASCII', badRecipient, plain('ädä')],
  ['10 kB', badRequest, plain('a'.repeat(10_000))],
]

describe('email', () => {
  test.each(emails)('%s: refused, nothing used', async (_, expected, to) => {
    await expectRefused(postern, expected, () =>
      postern.post('/v1/captchas', { channel: 'email', to }),
    )
  })

  test('upper case and the spellings of an international domain are one limit key', async () => {
    const spellings = [
      'ada@bücher.example',
      'ADA@BÜCHER.example',
      'Ada@xn--bcher-kva.example',
      'ada@bu\u0308cher.EXAMPLE',
      'ada@ｂücher.example',
      ' mailto:ada@bücher.example. ',
      'ada\u200b＠bü\u00adcher.example',
    ]
    const replies = []
    for (const to of spellings) {
      replies.push(await postern.post('/v1/captchas', { channel: 'email', to }))
    }
    expect(replies.map(({ status }) => status)).toEqual([202, ...Array(6).fill(429)])
    await postern.codeFor('ada@xn--bcher-kva.example')
  })
})

test('10 kB of digits, or of anything else, are refused in less than 5 ms', () => {
  const long = [
    '1'.repeat(10_000),
    `+${'1'.repeat(10_000)}`,
    '+86'.repeat(3_400),
    '(('.repeat(5_000),
    `${'1 '.repeat(5_000)}x`,
  ]
  const longAddresses = [
    `${'a'.repeat(10_000)}@example.com`,
    `ada@${'a.'.repeat(5_000)}com`,
    `ada@${'a-'.repeat(120)}`,
    `${'a.'.repeat(31)}!@${'a-'.repeat(90)}`,
    '@'.repeat(10_000),
  ]
  for (const [channel, texts] of [
    ['sms', long],
    ['email', longAddresses],
  ] as const) {
    for (const text of texts) {
      const timesMs = Array.from({ length: 5 }, () => {
        const startMs = performance.now()
        expect(normaliseRecipient(channel, text).kind).toBe('invalid')
        return performance.now() - startMs
      })
      // The fastest of five, because a busy machine may interrupt any of them.
      expect(Math.min(...timesMs)).toBeLessThan(5)
    }
  }
})
