import { describe, expect, test } from 'vitest'
import { preferredLanguage } from '../../src/base/preferred-language.ts'
import { Problem } from '../../src/base/problems.ts'
import { languages, words } from '../../src/base/words.ts'
import { problemAnswer, problemOf } from '../../src/http/problem.ts'
import { limitedBy } from '../../src/rules/refused.ts'

/** Problem types of draft-ietf-httpapi-ratelimit-headers-11, section 5. */
const registered = 'https://iana.org/assignments/http-problem-types'

const refusal = {
  admitted: false,
  rule: 'recipient',
  window: '60s',
  limit: 1,
  windowMs: 60_000,
  kind: 'sliding',
  retryAfterMs: 1_001,
} as const

describe('problemAnswer', () => {
  test('has code, status, title and detail of the catalogue, and the members of this one', () => {
    const answer = problemAnswer(new Problem('code_mismatch', { triesLeft: 2 }), undefined)
    expect(answer).toEqual({
      status: 422,
      headers: { 'content-type': 'application/problem+json' },
      body: {
        type: 'urn:postern:problem:code_mismatch',
        title: words.en.problems.code_mismatch.title,
        status: 422,
        detail: 'The code is wrong. You have 2 tries left.',
        code: 'code_mismatch',
        triesLeft: 2,
      },
    })
  })

  test('is in the requested language; a rule’s message is never translated', () => {
    const inChinese = problemAnswer(new Problem('code_gone'), 'zh-CN')
    expect(inChinese.body).toMatchObject(words.zh.problems.code_gone)
    const ofRule = new Problem('limited', { message: 'Bitte warten.', retryAfterMs: 5_000 })
    for (const language of languages) {
      const { body } = problemAnswer(ofRule, language)
      expect(body).toMatchObject({ detail: 'Bitte warten.', retryAfterMs: 5_000 })
      expect(body).not.toHaveProperty('message')
    }
  })

  test('wrong fields: words of the table in the requested language; words of a call in process stay', () => {
    const errors = [
      { path: 'a', word: 'oneOf', values: { options: ['1', '2'] } },
      { path: 'b', message: 'is odd' },
    ]
    const answer = problemAnswer(new Problem('invalid_request', { errors }), 'zh')
    expect(answer.body).toMatchObject({
      title: '请求无效',
      errors: [
        { path: 'a', message: '应为 1或2' },
        { path: 'b', message: 'is odd' },
      ],
    })
  })

  test.each([
    [1, '1'],
    [999, '1'],
    [1_000, '1'],
    [1_001, '2'],
    [59_999, '60'],
  ])('a wait of %i ms is Retry-After %s, in the detail too', (retryAfterMs, seconds) => {
    for (const [language, words] of [
      ['en', `Try again in ${seconds} second`],
      ['zh', `请 ${seconds} 秒`],
    ] as const) {
      const { headers, body } = problemAnswer(new Problem('limited', { retryAfterMs }), language)
      expect(headers?.['Retry-After']).toBe(seconds)
      expect((body as { detail: string }).detail).toContain(words)
    }
  })

  test.each([
    [
      { triesLeft: 1 },
      'The code is wrong. You have one try left.',
      '验证码错误，还可再试 1 次。',
      'Der Code ist falsch. Sie haben noch einen Versuch.',
    ],
    [
      { triesLeft: 2 },
      'The code is wrong. You have 2 tries left.',
      '验证码错误，还可再试 2 次。',
      'Der Code ist falsch. Sie haben noch 2 Versuche.',
    ],
    [
      { triesLeft: 0 },
      'The code was wrong, and no try is left. Request a new one.',
      '验证码错误，已无剩余次数，请重新获取。',
      'Der Code war falsch, und es ist kein Versuch mehr übrig. Fordern Sie einen neuen Code an.',
    ],
    [
      { triesLeft: 0, lockedForMs: 900_000 },
      'Too many wrong codes. Request a new one in 15 minutes.',
      '错误次数过多，请 15 分钟后重新获取验证码。',
      'Zu viele falsche Codes. Warten Sie noch 15 Minuten, und fordern Sie dann einen neuen an.',
    ],
  ])('a wrong code with %j: the next step of the person, in minutes', (members, en, zh, de) => {
    const detailIn = (language: string) =>
      problemAnswer(new Problem('code_mismatch', members), language).body
    expect(detailIn('en')).toMatchObject({ detail: en })
    expect(detailIn('zh')).toMatchObject({ detail: zh })
    expect(detailIn('de')).toMatchObject({ detail: de })
  })

  test('a lock of 15 minutes, in minutes; a rule’s own message with {seconds}, in seconds', () => {
    const retryAfterMs = 900_000
    const details = (members: object, language: string) =>
      problemAnswer(new Problem('locked', members as Record<string, unknown>), language).body
    expect(details({ retryAfterMs }, 'en')).toMatchObject({
      detail: 'Locked after too many tries. Try again in 15 minutes.',
    })
    expect(details({ retryAfterMs }, 'zh')).toMatchObject({
      detail: '尝试次数过多，已被锁定，请 15 分钟后再试。',
    })
    expect(details({ retryAfterMs: 172_800_000 }, 'de-AT')).toMatchObject({
      title: 'Gesperrt',
      detail:
        'Nach zu vielen Versuchen gesperrt. Warten Sie noch 2 Tage, bevor Sie es wieder versuchen.',
    })
    expect(details({ retryAfterMs, message: 'In {seconds} s' }, 'en')).toMatchObject({
      detail: 'In 900 s',
    })
  })

  test('a problem’s own headers are on the answer, its wait only where it has one', () => {
    const { headers } = problemAnswer(new Problem('unavailable', {}, { 'Retry-After': '2' }), 'en')
    expect(headers?.['Retry-After']).toBe('2')
    expect(problemAnswer(new Problem('forbidden'), 'en').headers).not.toHaveProperty('Retry-After')
  })
})

describe('problemOf', () => {
  test('invalid_recipient: a number without its country has a detail with an example, also in Chinese', () => {
    const refused = { outcome: 'invalid_recipient', because: 'no_country' } as const
    for (const language of ['en', 'zh']) {
      const { body } = problemAnswer(problemOf(refused), language)
      expect(body).toMatchObject({ detail: expect.stringContaining('+8613800138000') })
    }
  })

  test('limited: which policy, rule and window, how long, and the headers with the same', () => {
    const problem = problemOf(limitedBy('captcha', refusal))
    expect(problem.code).toBe('limited')
    const { status, headers, body } = problemAnswer(problem, undefined)
    expect(status).toBe(429)
    expect(headers).toMatchObject({
      'Retry-After': '2',
      RateLimit: '"captcha/recipient 60s";r=0;t=2',
      'RateLimit-Policy': '"captcha/recipient 60s";q=1;w=60',
    })
    expect(body).toEqual({
      ...{
        type: `${registered}#quota-exceeded`,
        title: words.en.problems.limited.title,
        status: 429,
      },
      'violated-policies': ['captcha/recipient 60s'],
      ...{ detail: 'Too many requests. Try again in 2 seconds.', code: 'limited' },
      ...{ policy: 'captcha', rule: 'recipient', window: '60s', retryAfterMs: 1_001 },
    })
  })

  test('locked: no window, also for a lockout with one', () => {
    const problem = problemOf(limitedBy('check', { ...refusal, kind: 'lockout' }))
    const { status, headers, body } = problemAnswer(problem, undefined)
    expect(status).toBe(429)
    expect(headers).toMatchObject({ 'Retry-After': '2' })
    expect(body).toMatchObject({
      ...{ type: `${registered}#abnormal-usage-detected`, code: 'locked' },
      ...{ policy: 'check', rule: 'recipient', 'violated-policies': ['check/recipient 60s'] },
    })
    expect(body).not.toHaveProperty('window')
  })

  test('any other outcome: its code, with its members as they are', () => {
    const { code, members } = problemOf({ outcome: 'destination_not_allowed', reason: 'mail' })
    expect([code, members]).toEqual(['destination_not_allowed', { reason: 'mail' }])
    const mismatch = problemOf({ outcome: 'code_mismatch', triesLeft: 1 })
    expect([mismatch.code, mismatch.members]).toEqual(['code_mismatch', { triesLeft: 1 }])
  })

  test('the words of the rule are the detail', () => {
    const problem = problemOf(limitedBy('notice', { ...refusal, message: 'notice duplicated' }))
    expect(problemAnswer(problem, 'zh').body).toMatchObject({ detail: 'notice duplicated' })
  })
})

test.each([
  ['zh;q=0.5, en;q=0.5', 'en'],
  ['zh;q=1.0, en;q=0.999', 'zh'],
  ['de-AT, en;q=0.9', 'de'],
  ['nds, de-CH-1996;q=0.3, en;q=0.2', 'de'],
  ['tlh, zh;q=0.3', 'zh'],
  ['zh;q=0.2, zh-TW;q=0.9, en;q=0.8', 'zh'],
  ['', 'en'],
  [`zh${' '.repeat(498)}`, 'zh'],
  [`zh${' '.repeat(499)}`, 'en'],
])('preferredLanguage of %j: %s', (header, language) => {
  expect(preferredLanguage(header)).toBe(language)
})
