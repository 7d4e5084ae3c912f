/**
 * Whether mails from our domain are believed. Receivers look its records up in DNS: SPF (RFC 7208), DKIM (RFC
 * 6376) and DMARC (RFC 7489), and many refuse a sender whose domain takes no mail itself.
 */

import { about, type Finding } from '../base/finding.ts'
import { type DnsResolver, findMailServers } from './mail-domains.ts'

export async function examineMailDomain(
  resolver: DnsResolver,
  domain: string,
  /** What the DKIM key is published under; nothing in DNS lists them. */
  dkimSelector: string | undefined,
): Promise<Finding[]> {
  const found = await Promise.all([
    examineMx(resolver, domain),
    examineSpf(resolver, domain),
    examineDkim(resolver, domain, dkimSelector),
    examineDmarc(resolver, domain),
  ])
  return found
}

const subjectOf = (domain: string) => about(`mail from ${domain}`)

async function examineMx(resolver: DnsResolver, domain: string): Promise<Finding> {
  const { ok, warning, error } = subjectOf(domain)
  const answer = await findMailServers(resolver, domain)
  if (answer === 'takes_mail') return ok('takes mail itself')
  if (answer === 'uncertain') return warning('DNS did not say whether it takes mail', 'look at DNS')
  const message = 'takes no mail itself (null MX, or neither MX nor address): many refuse its mails'
  return error(message, 'publish an MX for it')
}

async function examineSpf(resolver: DnsResolver, domain: string): Promise<Finding> {
  const { ok, warning, error } = subjectOf(domain)
  const texts = await textsOf(resolver, domain)
  if (!texts) return warning('DNS did not say who may send for it (SPF)', 'look at DNS')
  const [record, ...others] = texts.filter((text) => /^v=spf1(\s|$)/i.test(text))
  if (record === undefined) return error('no SPF record', 'publish one, e.g. v=spf1 include:… -all')
  if (others.length > 0) return error('two SPF records, so none counts', 'join them into one')
  if (/\s\+?all(\s|$)/i.test(record)) {
    return error('its SPF record lets everybody send', 'end it with -all or ~all')
  }
  return ok('SPF record found; does it name your mail server?')
}

async function examineDkim(
  resolver: DnsResolver,
  domain: string,
  selector: string | undefined,
): Promise<Finding> {
  const { ok, warning, error } = subjectOf(domain)
  if (selector === undefined) {
    const message = 'DKIM was not looked at: DNS does not list its selectors'
    return warning(message, 'npm run doctor -- --dkim-selector NAME, as in s= of DKIM-Signature')
  }
  const name = `${selector}._domainkey.${domain}`
  const texts = await textsOf(resolver, name)
  if (!texts) return warning(`DNS did not answer for ${name}`, 'look at DNS')
  const record = texts.find((text) => tagOf(text, 'p') !== undefined)
  if (record === undefined) return error(`no DKIM key at ${name}`, 'publish it')
  if (tagOf(record, 'p') === '')
    return error(`the DKIM key at ${name} is revoked`, 'publish a new one')
  return ok(`DKIM key found at ${name}`)
}

async function examineDmarc(resolver: DnsResolver, domain: string): Promise<Finding> {
  const { ok, warning, error } = subjectOf(domain)
  // That of the domain itself, else that of one above it.
  for (let at = domain; at.includes('.'); at = at.slice(at.indexOf('.') + 1)) {
    const texts = await textsOf(resolver, `_dmarc.${at}`)
    if (!texts) return warning('DNS did not say what its DMARC policy is', 'look at DNS')
    const record = texts.find((text) => /^v=DMARC1\s*(;|$)/i.test(text))
    if (record === undefined) continue
    const policy = tagOf(record, 'p')?.toLowerCase()
    if (!['none', 'quarantine', 'reject'].includes(policy ?? ''))
      return error(`the DMARC record at _dmarc.${at} has no p=`, 'mend it')
    return policy === 'none'
      ? warning('DMARC says p=none: others may send in its name', 'p=quarantine or p=reject')
      : ok(`DMARC says p=${policy}`)
  }
  return error(
    'no DMARC record: the large mailboxes refuse bulk mail without',
    `publish _dmarc.${domain}: v=DMARC1; p=quarantine`,
  )
}

/** A value of a record such as `v=DMARC1; p=none`. */
function tagOf(record: string, tag: string): string | undefined {
  const tags = record.split(';').map((part) => part.split('=').map((side) => side.trim()))
  return tags.find(([name]) => name?.toLowerCase() === tag)?.[1]
}

/** Empty when there are none, undefined when nobody can say. */
async function textsOf(resolver: DnsResolver, name: string): Promise<string[] | undefined> {
  try {
    return (await resolver.resolveTxt(name)).map((pieces) => pieces.join(''))
  } catch (error) {
    const { code = '' } = error as { code?: string }
    return ['ENODATA', 'ENOTFOUND'].includes(code) ? [] : undefined
  }
}

/** With `checkMx`, a resolver that can't see the outside would refuse every mail. */
export async function examineCheckMx(resolver: DnsResolver): Promise<Finding[]> {
  const { ok, warning, error } = about('checkMx')
  const answer = await findMailServers(resolver, knownDomain)
  if (answer === 'takes_mail') return [ok('DNS is seen from here')]
  const advice = 'look at the resolver, or leave recipients.mail.checkMx off'
  return answer === 'takes_none'
    ? [error(`DNS says that ${knownDomain} takes no mail: so every mail would be refused`, advice)]
    : [warning('DNS does not answer: nothing is refused', advice)]
}

const knownDomain = 'gmail.com'
