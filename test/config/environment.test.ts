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
