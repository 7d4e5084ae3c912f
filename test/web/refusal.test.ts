import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { languages } from '../../src/i18n/languages.ts'
import type { Problem } from '../../web/client.ts'
import { refusalOf } from '../../web/refusal.ts'

const origin = 'https://shop.example'
const asked = {
  during: 'check',
  channel: 'sms',
  hasOther: false,
  isNational: false,
  origin,
  language: 'en',
} as const
beforeEach(() => void vi.useFakeTimers({ now: new Date(2026, 10, 27, 10, 0, 30) }))
const mismatch = (triesLeft: number, lockedForMs?: number): Problem => ({
  code: 'code_mismatch',
  triesLeft,
  ...(lockedForMs ? { lockedForMs } : {}),
})

test.each([
  [mismatch(2), { name: 'wrong', about: 'code', values: { n: 2 } }],
  [mismatch(1), { name: 'wrongOne', about: 'code', values: { n: 1 } }],
  [mismatch(0), { name: 'wrongLast', about: 'code', isGone: true }],
  // Under a lock a new code would not help, however much time this one has left.
  [mismatch(0, 900_000), { name: 'locked', lockMs: 900_000, isGone: true }],
  [mismatch(1, 900_000), { name: 'locked', lockMs: 900_000, isGone: false }],
  [{ code: 'code_gone' }, { name: 'gone', about: 'code', isGone: true }],
  [
    { code: 'locked', policy: 'check', rule: 'guesses', retryAfterMs: 5 },
    { name: 'locked', lockMs: 5 },
  ],
  [
    { code: 'limited', policy: 'check', rule: 'check-ip', retryAfterMs: 61_000 },
    { name: 'checksLimited', values: { at: expect.stringMatching(/^10:02\sAM$/) } },
  ],
] as [Problem, object][])('a check is refused with %j: %j', (problem, refusal) =>
  expect(refusalOf(problem, asked)).toEqual(refusal),
)

test.each([
  ['with another channel', true, 'limitedOther'],
  ['with none', false, 'limited'],
])(
  'a send is refused by a limit or a lock, %s: a wait, and no lock of codes',
  (_, hasOther, name) => {
    for (const code of ['limited', 'locked'] as const) {
      const problem = { code, policy: 'captcha', rule: 'recipient', retryAfterMs: 7 }
      const sending = { ...asked, during: 'send', hasOther } as const
      expect(refusalOf(problem, sending)).toEqual({ name, waitMs: 7 })
    }
  },
)

afterEach(() => vi.unstubAllGlobals())

const workOf = (algorithm: string) => ({
  kind: 'altcha',
  challenge: { parameters: { algorithm }, signature: '' },
})

test.each([
  ['one that failed', workOf('PBKDF2/SHA-256'), true, 'challengeFailed'],
  [
    'one of a vendor, on a page without TLS',
    { kind: 'turnstile', siteKey: 'k' },
    false,
    'challengeFailed',
  ],
  ['none, from a gateway', undefined, false, 'challengeFailed'],
  ['proof of work, on a page without TLS', workOf('PBKDF2/SHA-256'), false, 'setup'],
  ['proof of work of another version', workOf('ARGON2ID'), true, 'setup'],
])(
  'a challenge is not answered: %s: whether it is worth another try',
  (_, challenge, isSecure, name) => {
    if (!isSecure) vi.stubGlobal('crypto', {})
    const problem = { code: 'challenge_required', challenge } as Problem
    for (const during of ['send', 'check'] as const) {
      const refusal = refusalOf(problem, { ...asked, during })
      expect(refusal).toEqual(name === 'setup' ? { name, isFault: true } : { name })
    }
  },
)

test('a number that is none: what to add, where it has no country', () => {
  const problems: Problem[] = [
    { code: 'invalid_recipient' },
    { code: 'invalid_request', errors: [{ path: 'to', message: 'too long' }] },
    {
      code: 'invalid_request',
      errors: ['scene', 'to'].map((path) => ({ path, message: 'too long' })),
    },
  ]
  for (const problem of problems) {
    const nameOf = (more: object) => refusalOf(problem, { ...asked, ...more }).name
    expect(nameOf({ isNational: true })).toBe('smsNational')
    expect(nameOf({})).toBe('smsInvalid')
    expect(nameOf({ channel: 'email' })).toBe('emailInvalid')
  }
})

test('a verification that is not found: gone for its next way, else a wrong address of the service', () => {
  const nameOf = (during: 'send' | 'next' | 'check') =>
    refusalOf({ code: 'not_found' }, { ...asked, during }).name
  expect(['send', 'next', 'check'].map((during) => nameOf(during as 'send'))).toEqual([
    'setup',
    'gone',
    'setup',
  ])
})

test('what the author of the page has to mend', () => {
  const ofOrigin = refusalOf({ code: 'forbidden', reason: 'origin' }, asked)
  expect(ofOrigin).toEqual({ name: 'otherOrigin', values: { origin }, isFault: true })
  const codes = ['forbidden', 'unauthorized', 'idempotency_key_reused'] as const
  for (const code of codes) {
    expect(refusalOf({ code }, asked)).toEqual({ name: 'setup', isFault: true })
  }
})

test.each([{}, { errors: { to: ['is required'] } }])(
  'a gateway’s invalid_request with %j: an error of the setup',
  (body) => {
    const problem = { code: 'invalid_request', ...body } as unknown as Problem
    expect(refusalOf(problem, asked)).toEqual({ name: 'setup', isFault: true })
  },
)

test('one try is written in the singular, and no other number has that sentence', () => {
  expect(languages.en.field.wrongOne).toMatch(/one try left/)
  expect(languages.en.field.wrong).toMatch(/\{n\} tries left/)
  expect(languages.zh.field.wrongOne).toContain('1 次')
})
