import { expect, test } from 'vitest'
import { examineCheckMx, examineMailDomain } from '../../src/recipient/examine-mail-domain.ts'
import { createDnsResolver } from '../../src/recipient/mail-domains.ts'
import { type DnsAnswer, startDns, useDns } from '../tools/dns.ts'

/** The four findings: MX, SPF, DKIM, DMARC. */
async function examine(names: Record<string, DnsAnswer>, selector?: string, domain = 'acme.test') {
  useDns(await startDns(names))
  const findings = await examineMailDomain(createDnsResolver(500), domain, selector)
  return findings.map(({ state, message }) => `${state}: ${message}`)
}

const key = 'v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A'

test('all well: MX, SPF, a long DKIM key, DMARC', async () => {
  const found = await examine(
    {
      'acme.test': { mx: [[10, 'mx.acme.test']], txt: ['other=1', 'v=spf1 include:x.test -all'] },
      's1._domainkey.acme.test': { txt: [key.padEnd(400, 'A')] },
      '_dmarc.acme.test': { txt: ['v=DMARC1; p=reject; rua=mailto:d@acme.test'] },
    },
    's1',
  )
  expect(found).toEqual([
    'ok: accepts mail',
    'ok: SPF record found; does it name your mail server?',
    'ok: DKIM key found at s1._domainkey.acme.test',
    'ok: DMARC has p=reject',
  ])
})

test('nothing there', async () => {
  expect(await examine({}, 's1')).toEqual([
    expect.stringMatching(/^error: accepts no mail/),
    'error: no SPF record',
    'error: no DKIM key at s1._domainkey.acme.test',
    expect.stringMatching(/^error: no DMARC record/),
  ])
})

test('DNS silent or broken: warnings, no errors', async () => {
  const found = await examine(
    {
      'acme.test': 'silence',
      's1._domainkey.acme.test': 'servfail',
      '_dmarc.acme.test': 'refused',
    },
    's1',
  )
  expect(found).toEqual(Array(4).fill(expect.stringMatching(/^warning: DNS gave no answer/)))
})

test.each([
  ['a null MX', { 'acme.test': { mx: [[0, '']] } }, 0, /^error: accepts no mail \(null MX/],
  [
    'two SPF records',
    { 'acme.test': { txt: ['v=spf1 -all', 'v=spf1 ~all'] } },
    1,
    /^error: two SPF/,
  ],
  [
    'SPF for everybody',
    { 'acme.test': { txt: ['v=spf1 +all'] } },
    1,
    /^error: its SPF record lets/,
  ],
  ['what only begins like SPF', { 'acme.test': { txt: ['v=spf10 -all'] } }, 1, /^error: no SPF/],
  [
    'a revoked DKIM key',
    { 's1._domainkey.acme.test': { txt: ['v=DKIM1; p='] } },
    2,
    /^error: the DKIM key .* is revoked/,
  ],
  [
    'DMARC p=none',
    { '_dmarc.acme.test': { txt: ['v=DMARC1; p=none'] } },
    3,
    /^warning: DMARC has p=none/,
  ],
  [
    'DMARC without p',
    { '_dmarc.acme.test': { txt: ['v=DMARC1; rua=mailto:a@b.test'] } },
    3,
    /^error: the DMARC record .* has no p=/,
  ],
] as [string, Record<string, DnsAnswer>, number, RegExp][])(
  '%s',
  async (_, names, index, expected) => {
    expect((await examine(names, 's1'))[index]).toMatch(expected)
  },
)

test('DKIM without a selector: not checked, and the advice names the option', async () => {
  expect((await examine({}))[2]).toMatch(/^warning: DKIM is not checked/)
})

test('DMARC of the domain above', async () => {
  const names = { '_dmarc.acme.test': { txt: ['v=DMARC1; p=quarantine'] } }
  expect((await examine(names, undefined, 'mail.acme.test'))[3]).toBe('ok: DMARC has p=quarantine')
})

test.each([
  ['seen', { mx: [[10, 'mx.test']] }, 'ok'],
  ['walled off', 'nxdomain', 'error'],
  ['silent', 'silence', 'warning'],
] as [string, DnsAnswer, string][])('checkMx where DNS is %s: %s', async (_, answer, state) => {
  useDns(await startDns({ 'gmail.com': answer }))
  expect(await examineCheckMx(createDnsResolver(500))).toMatchObject([{ state }])
})
