/** With a real name server: only a clear answer refuses, and a send never waits long. */
import { expect, test } from 'vitest'
import { createDnsResolver, createMailDomains } from '../../src/recipient/mail-domains.ts'
import { type DnsAnswer, startDns, type TestDns, useDns } from '../tools/dns.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

function open(dns: TestDns, options: Parameters<typeof createMailDomains>[0] = {}) {
  useDns(dns)
  const domains = createMailDomains(options)
  releaseLater(domains.close)
  return domains
}

/** The result, and whether it took about as long as a caller may wait. */
async function timed(work: Promise<boolean>) {
  const startedAt = performance.now()
  const takesMail = await work
  return { takesMail, tookMs: performance.now() - startedAt }
}

const answers: [string, DnsAnswer, boolean][] = [
  ['an MX', { mx: [[10, 'mx.acme.test']] }, true],
  ['a null MX (RFC 7505)', { mx: [[0, '']], a: ['192.0.2.1'] }, false],
  [
    'a null MX beside another, which it may not have',
    {
      mx: [
        [0, ''],
        [10, 'mx.acme.test'],
      ],
    },
    true,
  ],
  ['no MX, but an A record (RFC 5321, 5.1)', { a: ['192.0.2.1'] }, true],
  ['no MX, but an AAAA record', { aaaa: ['20010db8000000000000000000000001'] }, true],
  ['neither MX nor address', { txt: ['v=spf1 -all'] }, false],
  ['no such name', 'nxdomain', false],
  ['SERVFAIL', 'servfail', true],
  ['REFUSED', 'refused', true],
]

test.each(answers)('%s', async (_, answer, takesMail) => {
  const dns = await startDns({ 'acme.test': answer })
  expect(await open(dns).takesMail('shop', 'acme.test')).toBe(takesMail)
})

test('silence: let through after 300 ms, a second caller waits no longer than the first', async () => {
  const dns = await startDns({ 'acme.test': 'silence' })
  useDns(dns)
  const domains = open(dns, { resolver: createDnsResolver(30_000) })
  const first = timed(domains.takesMail('shop', 'acme.test'))
  await new Promise((resolve) => setTimeout(resolve, 150))
  const second = timed(domains.takesMail('shop', 'acme.test'))
  expect(await first).toMatchObject({ takesMail: true })
  expect((await first).tookMs).toBeGreaterThan(290)
  expect((await second).takesMail).toBe(true)
  expect((await second).tookMs).toBeLessThan((await first).tookMs)
  // The look-up continues, and the next caller does not wait for it.
  const later = domains.takesMail('shop', 'acme.test')
  expect(await Promise.race([later, new Promise((resolve) => setImmediate(resolve))])).toBe(true)
  expect(dns.queries).toHaveLength(1)
})

test('an answer that is late for one send is there for the next', async () => {
  const dns = await startDns({ 'acme.test': { mx: [[0, '']], delayMs: 300 } })
  useDns(dns)
  // A shorter time of the resolver would repeat the question.
  const domains = open(dns, { waitMs: 20, resolver: createDnsResolver(30_000) })
  expect(await domains.takesMail('shop', 'acme.test')).toBe(true)
  await eventually(async () => expect(await domains.takesMail('shop', 'acme.test')).toBe(false))
  expect(dns.queries).toHaveLength(1)
})

test.each([
  ['that it takes mail, for an hour', { mx: [[10, 'mx.acme.test']] } as DnsAnswer, 3_600_000],
  ['that it takes none, for five minutes', { mx: [[0, '']] } as DnsAnswer, 300_000],
  ['that nobody could say, for half a minute', 'servfail' as DnsAnswer, 30_000],
])('remembered: %s', async (_, answer, keptMs) => {
  let nowMs = 0
  const dns = await startDns({ 'acme.test': answer })
  const domains = open(dns, { now: () => nowMs })
  const first = await domains.takesMail('shop', 'acme.test')
  nowMs = keptMs - 1
  expect(await domains.takesMail('shop', 'acme.test')).toBe(first)
  const asked = dns.queries.length
  nowMs = keptMs
  await domains.takesMail('shop', 'acme.test')
  expect(dns.queries.length).toBeGreaterThan(asked)
})

test('a hundred callers at once ask once; while too many domains are looked up others are let through unasked', async () => {
  const dns = await startDns({
    'a.test': 'silence',
    'b.test': 'silence',
    'c.test': { mx: [[0, '']] },
  })
  const domains = open(dns, { maxLookUps: 8, waitMs: 300 })
  const callers = Array.from({ length: 100 }, () => domains.takesMail('shop', 'a.test'))
  const other = domains.takesMail('shop', 'b.test')
  const third = domains.takesMail('shop', 'c.test')
  expect(await Promise.race([third, new Promise((resolve) => setImmediate(resolve))])).toBe(true)
  expect(new Set(await Promise.all([...callers, other]))).toEqual(new Set([true]))
  expect(dns.queries.filter((query) => query === 'MX a.test')).toHaveLength(1)
  expect(dns.queries).not.toContain('MX c.test')
})

test('an app has a quarter of the look-ups, so that a flood of one leaves the others theirs', async () => {
  const silent = Array.from({ length: 5 }, (_, at) => `s${at}.test`)
  const dns = await startDns({
    ...Object.fromEntries(silent.map((name) => [name, 'silence' as const])),
    'none.test': { mx: [[0, '']] },
  })
  const domains = open(dns, { maxLookUps: 16 })
  const flood = silent.map((name) => domains.takesMail('flood', name))
  expect(await domains.takesMail('flood', 'none.test')).toBe(true)
  expect(await domains.takesMail('shop', 'none.test')).toBe(false)
  expect(await Promise.all(flood)).toEqual(Array(5).fill(true))
  expect(dns.queries.filter((query) => query.startsWith('MX s'))).toHaveLength(4)
})

test('a domain of 250 characters, and one that DNS knows no question for, throw nothing', async () => {
  const dns = await startDns()
  const domains = open(dns)
  expect(
    await domains.takesMail('shop', [...Array(4).fill('a'.repeat(60)), 'test'].join('.')),
  ).toBe(false)
  expect(await domains.takesMail('shop', `${'a'.repeat(70)}.test`)).toBe(true)
})

test('a resolver ends a look-up within its time', async () => {
  const dns = await startDns({ 'acme.test': 'silence' })
  useDns(dns)
  const startedAt = performance.now()
  await expect(createDnsResolver(1_000).resolveMx('acme.test')).rejects.toMatchObject({
    code: 'ETIMEOUT',
  })
  // Node alone would ask for twenty seconds and more.
  expect(performance.now() - startedAt).toBeLessThan(10_000)
})
