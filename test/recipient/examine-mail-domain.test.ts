import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  examineCheckMx,
  examineMailDomain,
  type Signer,
} from '../../src/recipient/examine-mail-domain.ts'
import { createDnsResolver } from '../../src/recipient/mail-domains.ts'
import { type DnsAnswer, startDns, useDns } from '../tools/dns.ts'

/** The findings: MX, SPF, DKIM keys, DMARC, and the alignment of Postern's signatures. */
async function examineSigners(
  names: Record<string, DnsAnswer>,
  domain: string,
  signers: Signer[],
  isInEnvelope = true,
) {
  useDns(await startDns(names))
  return examineMailDomain(createDnsResolver(500), domain, { signers, isInEnvelope })
}

async function examine(names: Record<string, DnsAnswer>, selector?: string, domain = 'acme.test') {
  const signers = selector === undefined ? [] : [{ domain, selector }]
  const findings = await examineSigners(names, domain, signers)
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
    expect.stringMatching(/^ok: SPF record found, and it aligns/),
    'ok: DKIM key found at s1._domainkey.acme.test',
    'ok: DMARC has p=reject',
  ])
})

test('only by SES: no SPF is needed, and the selector is one that SES shows', async () => {
  const names = { 'acme.test': { mx: [[10, 'mx.acme.test']] } } as Record<string, DnsAnswer>
  const found = await examineSigners(names, 'acme.test', [], false)
  expect(found.map(({ state, message }) => `${state}: ${message}`)).toEqual([
    'ok: accepts mail',
    'ok: SPF is not needed: SES sends with another envelope, so DKIM must align',
    'warning: DKIM is not checked, because DNS does not list selectors',
    expect.stringMatching(/^error: no DMARC record/),
  ])
  expect(found[2]?.advice).toMatch(
    /--dkim-selector NAME with one of the three names that SES shows/,
  )
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

test('DMARC of the domain above has a separate policy for subdomains; of two records none counts', async () => {
  const above = { '_dmarc.acme.test': { txt: ['v=DMARC1; p=none; sp=reject'] } }
  expect((await examine(above, undefined, 'mail.acme.test'))[3]).toBe('ok: DMARC has sp=reject')
  expect((await examine(above))[3]).toMatch(/^warning: DMARC has p=none/)
  const two = { '_dmarc.acme.test': { txt: ['v=DMARC1; p=reject', 'v=DMARC1; p=none'] } }
  expect((await examine(two))[3]).toMatch(/^error: no DMARC record/)
})

test('DMARC of a public suffix counts only for an organisation without a record', async () => {
  const suffix = { '_dmarc.co.test': { txt: ['v=DMARC1; p=reject; psd=y'] } }
  const dmarcOf = async (names: Record<string, DnsAnswer>, domain: string) =>
    (await examine(names, undefined, domain))[3]
  expect(await dmarcOf(suffix, 'mail.acme.co.test')).toBe('ok: DMARC has p=reject')
  const both = { ...suffix, '_dmarc.acme.co.test': { txt: ['v=DMARC1; p=quarantine'] } }
  expect(await dmarcOf(both, 'mail.acme.co.test')).toBe('ok: DMARC has p=quarantine')
})

test('DMARC of the domain above', async () => {
  const names = { '_dmarc.acme.test': { txt: ['v=DMARC1; p=quarantine'] } }
  expect((await examine(names, undefined, 'mail.acme.test'))[3]).toBe('ok: DMARC has p=quarantine')
})

describe('signatures of Postern', () => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
  const recordOf = (type: 'spki' | 'pkcs1') =>
    `v=DKIM1; p=${publicKey.export({ type, format: 'der' }).toString('base64')}`
  const record = recordOf('spki')
  const signer = (domain: string): Signer => ({ domain, selector: 's1', privateKey })

  async function findKey(txt: string[], tags = '') {
    const names = { 's1._domainkey.acme.test': { txt: txt.map((text) => `${text}${tags}`) } }
    const [, , found] = await examineSigners(names, 'acme.test', [signer('acme.test')])
    return { told: `${found?.state}: ${found?.message}`, advice: found?.advice }
  }

  test.each([
    ['published', [record], '', /^ok: .* is the one that signs$/],
    ['published in the older form', [recordOf('pkcs1')], '', /^ok: .* the one that signs$/],
    ['published for all', [record], '; h=sha1:sha256; s=*; t=s', /^ok: /],
    ['not published', [], '', /^error: no DKIM key at s1\._domainkey\.acme\.test$/],
    ['another one', [`${record.slice(0, -9)}AAAAAAAAA`], '', /^error: .* not the one that signs$/],
    ['two of them', [record, record], '', /^error: two DKIM keys/],
    ['revoked', ['v=DKIM1; p='], '', /^error: .* is revoked$/],
    ['for SHA-1', [record], '; h=sha1', /^error: .* not for mails with SHA-256/],
    ['for other services', [record], '; s=other', /^error: .* not for mails/],
    ['for tests', [record], '; t=y:s', /^warning: .* for tests/],
  ])('the key is %s', async (_, texts, tags, expected) => {
    expect((await findKey(texts, tags)).told).toMatch(expected)
  })

  test('the advice is the record to publish, and never has the private key', async () => {
    const { advice = '' } = await findKey([])
    expect(advice).toBe(`publish ${record.replace('v=DKIM1;', 'v=DKIM1; k=rsa;')}`)
    expect((await findKey([advice.replace('publish ', '')])).told).toMatch(/^ok/)
  })

  const dmarc = (tags = '') => ({ txt: [`v=DMARC1; p=reject${tags}`] })
  test.each([
    [
      'the same domain, strict',
      'acme.test',
      'acme.test',
      { 'acme.test': dmarc('; adkim=s') },
      'ok',
    ],
    ['a subdomain', 'acme.test', 'mail.acme.test', { 'acme.test': dmarc() }, 'ok'],
    ['the domain above', 'news.acme.test', 'acme.test', { 'acme.test': dmarc() }, 'ok'],
    ['a sister', 'a.acme.test', 'b.acme.test', { 'acme.test': dmarc('; adkim=r') }, 'ok'],
    [
      'a subdomain, strict',
      'acme.test',
      'x.acme.test',
      { 'acme.test': dmarc('; adkim=s') },
      'error',
    ],
    [
      'another domain',
      'acme.test',
      'esp.test',
      { 'acme.test': dmarc(), 'esp.test': dmarc() },
      'error',
    ],
    ['another domain, and no DMARC anywhere', 'acme.test', 'esp.test', {}, 'error'],
    ['another domain without DMARC', 'acme.test', 'esp.test', { 'acme.test': dmarc() }, 'error'],
    [
      'a neighbour below a public suffix',
      ...['one.co.test', 'two.co.test'],
      { 'co.test': dmarc('; psd=y'), 'one.co.test': dmarc() },
      'error',
    ],
    [
      'a subdomain below a public suffix',
      ...['one.co.test', 'mail.one.co.test'],
      { 'co.test': dmarc('; psd=y') },
      'ok',
    ],
    [
      'a subdomain that is an organisation of its own',
      ...['acme.test', 'x.acme.test'],
      { 'acme.test': dmarc(), 'x.acme.test': dmarc('; psd=n') },
      'error',
    ],
    ['a domain whose DNS is silent', 'acme.test', 'esp.test', { 'esp.test': 'silence' }, 'warning'],
  ] as [string, string, string, Record<string, DnsAnswer>, string][])(
    'alignment: %s',
    async (_, from, domain, records, state) => {
      const entries = Object.entries(records).map(([at, answer]) => [`_dmarc.${at}`, answer])
      const names = Object.fromEntries(entries)
      const found = (await examineSigners(names, from, [signer(domain)])).at(-1)
      expect(found?.state).toBe(state)
      if (state !== 'warning') expect(found?.message).toMatch(/align/)
      if (state === 'error') expect(found?.advice).toBe(`sign with domain: ${from}`)
    },
  )
})

test.each([
  ['seen', { mx: [[10, 'mx.test']] }, 'ok'],
  ['walled off', 'nxdomain', 'error'],
  ['silent', 'silence', 'warning'],
] as [string, DnsAnswer, string][])('checkMx where DNS is %s: %s', async (_, answer, state) => {
  useDns(await startDns({ 'gmail.com': answer }))
  expect(await examineCheckMx(createDnsResolver(500))).toMatchObject([{ state }])
})
