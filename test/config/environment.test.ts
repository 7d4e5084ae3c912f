import { describe, expect, test } from 'vitest'
import { readEnvironment } from '../../src/config/environment.ts'

const needed = {
  DATABASE_URL: 'postgresql://localhost/postern',
  REDIS_URL: 'redis://localhost',
  SECRET: 'x'.repeat(32),
}

test('readEnvironment: only the required values give the documented defaults', () => {
  const read = readEnvironment({ ...needed, UNKNOWN: 'ignored', PORT: '' })
  expect(read).toEqual({
    ok: true,
    environment: {
      ...needed,
      PORT: 3000,
      HOST: '0.0.0.0',
      ADMIN_PORT: 9100,
      POSTERN_CONFIG: './postern.yaml',
      DRAIN_SECONDS: 0,
      TRUST_PROXY_HOPS: 0,
      LOG_LEVEL: 'info',
      POSTERN_DATA: './.postern',
    },
  })
  expect(read.ok && Object.isFrozen(read.environment)).toBe(true)
})

test('readEnvironment: every missing and wrong value is named at once, and no value is repeated', () => {
  const read = readEnvironment({
    PORT: '70000',
    ADMIN_PORT: 'x',
    DATABASE_URL: 'mysql://canary',
    SECRET: 'canary short',
    BOOTSTRAP_SECRET_KEY: 'canary',
    TRUST_PROXY_HOPS: '-1',
    LOG_LEVEL: 'loud',
  })
  expect(read.ok).toBe(false)
  const problems = read.ok ? [] : read.problems
  for (const name of [
    'PORT',
    'ADMIN_PORT',
    'DATABASE_URL',
    'REDIS_URL',
    'SECRET',
    'BOOTSTRAP_SECRET_KEY',
    'TRUST_PROXY_HOPS',
    'LOG_LEVEL',
  ]) {
    expect(problems.filter((problem) => problem.startsWith(name))).toHaveLength(1)
  }
  expect(problems).toEqual(
    expect.arrayContaining([
      'PORT: must be a whole number from 0 to 65535',
      'ADMIN_PORT: must be a whole number from 0 to 65535',
      'REDIS_URL is not set',
      'TRUST_PROXY_HOPS: must be a whole number from 0 to 10',
      'LOG_LEVEL: must be one of fatal, error, warn, info, debug, silent',
    ]),
  )
  expect(problems.join()).not.toContain('canary')
})

describe('single values', () => {
  const faulty: [string, string][] = [
    ['PORT', '3000.5'],
    ['PORT', 'NaN'],
    ['REDIS_URL', 'http://localhost'],
    ['REDIS_URL', 'redis://'],
    ['REDIS_URL', 'redis+sentinel://a:1,b:2'],
    ['REDIS_URL', 'redis+socket://a:1'],
    ['SECRET', '密'.repeat(10)],
    ['SECRET_PREVIOUS', 'short'],
    ['BOOTSTRAP_SECRET_KEY', 'has spaces in the middle'],
    ['BOOTSTRAP_SECRET_KEY', 'x'.repeat(201)],
    ['TRUST_PROXY_HOPS', '1.5'],
    ['LOG_LEVEL', 'INFO'],
  ]
  test.each(faulty)('%s=%s is refused', (name, value) => {
    expect(readEnvironment({ ...needed, [name]: value }).ok).toBe(false)
  })
  test.each([
    ['REDIS_URL', 'redis+cluster://a:1,b:2'],
    ['REDIS_URL', 'redis+sentinel://a:1,b:2/main'],
    ['REDIS_URL', 'rediss+cluster://[::1]:7000,b:2'],
    ['REDIS_URL', 'rediss+sentinel://:p@[::1]:26379/main?sentinelPassword=x'],
    ['REDIS_URL', 'rediss://user:pass@host:6380/2'],
    ['DATABASE_URL', 'postgres://localhost/x'],
    ['SECRET', '密'.repeat(11)],
    ['PORT', '0'],
  ])('%s=%s is taken', (name, value) => {
    expect(readEnvironment({ ...needed, [name]: value }).ok).toBe(true)
  })
})

test.each([
  'postgresql://u:p#w@h/d',
  'postgresql://u:p/w@h/d',
  'postgresql://u:p@h:abc/d',
  'postgresql://u:p@h1,h2:5432/d',
])(
  'readEnvironment: a DATABASE_URL that the driver cannot read (%s) → refused, with what to do',
  (url) => {
    expect(readEnvironment({ ...needed, DATABASE_URL: url })).toEqual({
      ok: false,
      problems: [
        'DATABASE_URL: is not an address of one server; percent-encode # / ? and @ in the password',
      ],
    })
  },
)

test.each([
  ['redis://:p%w@h', /percent-encode/],
  ['redis://:p#w@h', /percent-encode/],
  ['redis://h:abc', /percent-encode/],
  ['redis://h/shop', /database.* number/],
  ['redis+cluster://h:abc', /h:abc.* host:port/],
  ['redis+cluster://h:99999', /h:99999.* host:port/],
  ['redis+cluster://h1:1, h2:2', / h2:2.* host:port/],
  ['redis+cluster://h1,', /host:port/],
  ['redis+cluster://:p@ss@h', /percent-encode/],
  ['redis+cluster://:p%w@h', /percent-encode/],
  ['redis+cluster://h/2', /no database/],
  ['redis+sentinel://2001:db8::1:26379/m', /host:port/],
  ['redis+sentinel://h/m/2', /no database/],
  ['redis+sentinel://h/m?db=2', /\?db is not read/],
  ['redis+sentinel://h/m?sentinelpassword=x', /\?sentinelpassword is not read/],
])(
  'readEnvironment: REDIS_URL %s → refused, because part of it would be read another way',
  (url, reason) => {
    const read = readEnvironment({ ...needed, REDIS_URL: url })
    expect(read.ok ? [] : read.problems).toEqual([expect.stringMatching(reason)])
  },
)

test.each([
  'redis://h/3',
  'redis://h?db=2',
  'rediss://user:p%40ss@h.example:6380/0',
  'redis+cluster://:pw@[::1]:7000,h2:7001/',
  'rediss+sentinel://s1,s2:26380/my%20main?sentinelPassword=a+b%26c',
])('readEnvironment: REDIS_URL %s → accepted', (url) => {
  expect(readEnvironment({ ...needed, REDIS_URL: url }).ok).toBe(true)
})

test('readEnvironment: a line break behind a value, as secrets made from files have → it is no part of the value', () => {
  const read = readEnvironment({
    DATABASE_URL: `${needed.DATABASE_URL}\n`,
    REDIS_URL: 'redis+sentinel://h/main\n',
    LOG_LEVEL: 'info\r\n',
    // Older processes have derived their keys from the whole text.
    SECRET: `${needed.SECRET}\n`,
  })
  expect(read).toMatchObject({
    environment: {
      DATABASE_URL: needed.DATABASE_URL,
      REDIS_URL: 'redis+sentinel://h/main',
      LOG_LEVEL: 'info',
      SECRET: `${needed.SECRET}\n`,
    },
  })
})
