import { describe, expect, test } from 'vitest'
import {
  createLimiter,
  InvalidPolicies,
  MissingField,
  parsePolicies,
} from '../../src/limiter/index.ts'

const problemsOf = (raw: unknown) => {
  const parsed = parsePolicies(raw)
  return parsed.ok
    ? []
    : parsed.problems.map(({ path, message }) => `${path.join('.')}: ${message}`)
}

describe('policies', () => {
  test('every problem is listed at once, each with its path', () => {
    const problems = problemsOf({
      captcha: [
        { name: 'a', key: '{to}', sliding: ['5 per 1h', '3 per eternity'] },
        { name: 'a', key: '{to', fixed: '2 per 60s', colour: 'red' },
        { name: 'b', key: '{to}' },
        { name: 'c', key: '{to}', sliding: '1 per 1s', fixed: '1 per 1s' },
      ],
      daily: [
        { name: 'd', key: 'all', calendar: { limit: 1, cron: 'never', timezone: 'Mars/Olympus' } },
        { name: 'e', key: '{u}', lockout: { limit: 3, window: '5m', lock: '0s', extra: 1 } },
        { name: 'f', key: '{u}', sliding: '3 per 1m', permits: 4 },
        { name: 'g', key: '{u}', sliding: ['3 per 60s', '4 per 1m'] },
      ],
    })
    expect(problems).toEqual(
      expect.arrayContaining([
        'captcha.0.sliding.1: "3 per eternity" is not a limit such as "5 per 1h"',
        'captcha.1.colour: unknown key',
        'captcha.2: a rule has exactly one of sliding, fixed, bucket, calendar and lockout',
        'captcha.3: a rule has exactly one of sliding, fixed, bucket, calendar and lockout',
        'daily.0.calendar.cron: must be a cron expression that fires again',
        'daily.0.calendar.timezone: must be a time zone such as Asia/Shanghai',
        'daily.1.lockout.extra: unknown key',
        'daily.1.lockout.lock: must be a duration such as 500ms, 60s, 5m, 1h or 7d',
        'daily.2.permits: permits are above a limit, so nothing would ever pass',
        'daily.3.sliding: two limits have the same window',
      ]),
    )
  })

  test('too long or too many: the problem names the most that is possible', () => {
    const problems = problemsOf({
      p: [
        { name: 'a', key: '{u}', lockout: { limit: 3, window: '3651d', lock: '11574d' } },
        { name: 'b', key: '{u}', sliding: '5 per 3651d' },
        { name: 'c', key: '{u}', fixed: '1000000001 per 1h' },
        { name: 'd', key: '{u}', bucket: { rate: '1 per 999999999h', burst: 1 } },
      ],
    })
    expect(problems.toSorted()).toEqual([
      'p.0.lockout.lock: must be at most 3650d',
      'p.0.lockout.window: must be at most 3650d',
      'p.1.sliding: "5 per 3651d" is above 1000000000 per 3650d',
      'p.2.fixed: "1000000001 per 1h" is above 1000000000 per 3650d',
      'p.3.bucket.rate: "1 per 999999999h" is above 1000000000 per 3650d',
    ])
  })

  test('what a rule or its kind lacks is called missing', () => {
    const problems = problemsOf({ p: [{ key: '{to}', lockout: { limit: 3, window: '5m' } }] })
    expect(problems.toSorted()).toEqual(['p.0.lockout.lock: is missing', 'p.0.name: is missing'])
  })

  test('duplicate names and broken keys are refused', () => {
    const rule = { key: '{to}', sliding: '1 per 1s' }
    expect(
      problemsOf({
        p: [
          { ...rule, name: 'a' },
          { ...rule, name: 'a' },
        ],
      }),
    ).toEqual(['p.1.name: two rules are named "a"'])
    for (const key of ['{to', 'to}', '{}', '{a b}', '{{to}}']) {
      expect(problemsOf({ p: [{ ...rule, name: 'a', key }] })).toEqual([
        `p.0.key: "${key}" has a brace that is not part of a {field}`,
      ])
    }
    expect(() => createLimiter({ policies: { p: [{ ...rule, name: 'a', key: '{' }] } })).toThrow(
      InvalidPolicies,
    )
  })

  test('the default policies of the contract hold', () => {
    expect(
      problemsOf({
        captcha: [
          { name: 'duplicate', key: '{dedupe}', fixed: '2 per 60s' },
          {
            name: 'recipient',
            key: '{channel}:{to}',
            sliding: ['1 per 60s', '5 per 1h', '10 per 24h'],
          },
          { name: 'ip', key: '{ip}', sliding: '60 per 10m' },
          {
            name: 'daily',
            key: '{app}',
            calendar: { limit: 100_000, cron: '0 0 * * *', timezone: 'Asia/Shanghai' },
          },
        ],
        login: [
          { name: 'tries', key: '{subject}', lockout: { limit: 3, window: '5m', lock: '15m' } },
        ],
      }),
    ).toEqual([])
  })

  test('a missing field names policy, rule and field; inherited members are not fields', () => {
    const limiter = createLimiter({
      policies: { p: [{ name: 'r', key: '{channel}:{constructor}', sliding: '1 per 1s' }] },
    })
    expect(() => limiter.tryAcquire('p', { channel: 'sms' })).toThrow(MissingField)
    expect(() => limiter.tryAcquire('p', {} as never)).toThrow(
      'policy p, rule r: the field channel is missing',
    )
    expect(() => limiter.tryAcquire('q', {})).toThrow('there is no policy q')
  })

  test('no two different subjects share a count, however their fields are cut', () => {
    const limiter = createLimiter({
      policies: { p: [{ name: 'r', key: '{a}:{b}', sliding: '1 per 1h' }] },
    })
    const pairs = [
      ['1', '23'],
      ['12', '3'],
      ['1:2', '3'],
      ['1', '2:3'],
      ['', '1:1:23'],
      ['1:1:', '23'],
    ]
    for (const [a, b] of pairs) {
      expect(limiter.tryAcquire('p', { a: a as string, b: b as string }).admitted).toBe(true)
    }
    expect(limiter.tryAcquire('p', { a: 1, b: 23 }).admitted).toBe(false)
  })

  test('mode observe counts and reports, and never refuses', () => {
    const reported: string[] = []
    const limiter = createLimiter({
      policies: { p: [{ name: 'shadow', key: '{u}', sliding: '2 per 1h', mode: 'observe' }] },
      onObserved: ({ policy, rule }) => reported.push(`${policy} ${rule}`),
    })
    const left = [1, 2, 3, 4].map(() => {
      const answer = limiter.tryAcquire('p', { u: 1 })
      return answer.admitted && answer.remaining[0]?.left
    })
    expect(left).toEqual([1, 0, 0, 0])
    expect(reported).toEqual(['p shadow', 'p shadow'])
  })

  test('include: the rules of another policy come first, and both policies count in them together', async () => {
    const limiter = createLimiter({
      policies: {
        shared: [{ name: 'all', key: '{to}', sliding: '2 per 60s' }],
        page: [{ include: 'shared' }, { name: 'own', key: '{ip}', sliding: '1 per 60s' }],
      },
      clock: () => 1_000,
    })
    const fields = { to: 'a', ip: 'b' }
    expect((await limiter.acquire('page', fields)).admitted).toBe(true)
    expect(await limiter.acquire('page', fields)).toMatchObject({ admitted: false, rule: 'own' })
    expect((await limiter.acquire('shared', { to: 'a' })).admitted).toBe(true)
    expect(await limiter.acquire('page', { to: 'a', ip: 'c' })).toMatchObject({ rule: 'all' })
    expect(limiter.windows('page').map(({ rule }) => rule)).toEqual(['all', 'own'])
  })

  test('include: only of a policy that is there, does not lead back, and shares no name', () => {
    const rule = { name: 'r', key: '{to}', sliding: '1 per 60s' }
    expect(
      problemsOf({
        a: [{ include: 'b' }, { include: 'nobody' }, { ...rule, name: 'x' }],
        b: [{ include: 'c' }],
        c: [rule],
        d: [{ include: 'b' }, rule],
        e: [{ include: 'c', name: 'e' }],
        f: [{ include: 'g' }],
        g: [{ include: 'f' }],
        h: [{ include: 'h' }],
        i: [{ include: 'f' }],
      }),
    ).toEqual([
      'e.0.name: unknown key',
      'a.1.include: there is no policy "nobody"',
      'd.1.name: two rules are named "r"',
      'f.0.include: "g" leads into a circle of includes',
      'g.0.include: "f" leads into a circle of includes',
      'h.0.include: "h" leads into a circle of includes',
      'i.0.include: "f" leads into a circle of includes',
    ])
  })

  test('include: also what the included policy includes, each rule under the policy that declares it', () => {
    const rule = { name: 'r', key: '{to}', sliding: '1 per 60s' }
    const parsed = parsePolicies({
      a: [{ include: 'b' }, { ...rule, name: 'x' }],
      b: [{ include: 'c' }, { ...rule, name: 'y' }],
      c: [rule],
    })
    expect(parsed.ok && parsed.policies.a?.map(({ policy, name }) => `${policy}.${name}`)).toEqual([
      'c.r',
      'b.y',
      'a.x',
    ])
  })

  test('include: a name that every object has is no policy; two mistakes are reported as they are', () => {
    expect(problemsOf({ a: [{ include: 'constructor' }] })).toEqual([
      'a.0.include: there is no policy "constructor"',
    ])
    const wrong = { include: 'b', name: 'r' }
    expect(problemsOf({ a: [wrong, wrong], b: [] })).toEqual([
      'a.0.name: unknown key',
      'a.1.name: unknown key',
    ])
  })

  test('peek and reset of one rule need the fields of that rule alone', async () => {
    const limiter = createLimiter({
      policies: {
        p: [
          { name: 'to', key: '{to}', sliding: '2 per 60s' },
          { name: 'spend', key: '{app}', sliding: '9 per 60s', permits: 'price' },
        ],
      },
      clock: () => 1_000,
    })
    await limiter.acquire('p', { to: 'a', app: 'x', price: 3 })
    expect(await limiter.peek('p', { to: 'a' }, 'to')).toMatchObject([{ rule: 'to', used: 1 }])
    await limiter.reset('p', { to: 'a' }, 'to')
    expect(await limiter.peek('p', { to: 'a', app: 'x' })).toMatchObject([{ used: 0 }, { used: 3 }])
  })
})
