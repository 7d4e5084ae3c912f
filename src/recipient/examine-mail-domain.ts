/**
 * Reports if receivers trust mails of a sender's domain. They look up its SPF (RFC 7208), DKIM (RFC 6376) and DMARC (RFC
 * 7489) records in DNS. Many refuse a sender whose domain accepts no mail.
 */

import { about, type Finding } from '../base/finding.ts'
import { type DnsResolver, findMailServers } from './mail-domains.ts'

export async function examineMailDomain(
  resolver: DnsResolver,
  domain: string,
  /** The name under which the DKIM key is published. DNS has no list of these names. */
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
  if (answer === 'takes_mail') return ok('accepts mail')
  if (answer === 'uncertain')
    return warning('DNS gave no answer about its mail servers', 'check the DNS resolver')
  const message =
    'accepts no mail (null MX, or neither MX nor address), so many receivers refuse its mails'
  return error(message, 'publish an MX for it')
}

async function examineSpf(resolver: DnsResolver, domain: string): Promise<Finding> {
  const { ok, warning, error } = subjectOf(domain)
  const texts = await textsOf(resolver, domain)
  if (!texts) return warning('DNS gave no answer about its SPF record', 'check the DNS resolver')
  const [record, ...others] = texts.filter((text) => /^v=spf1(\s|$)/i.test(text))
  if (record === undefined) return error('no SPF record', 'publish one, e.g. v=spf1 include:… -all')
  if (others.length > 0)
    return error('two SPF records, so receivers ignore both', 'join them into one')
  if (/\s\+?all(\s|$)/i.test(record)) {
    return error('its SPF record lets every server send', 'end it with -all or ~all')
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
    const message = 'DKIM is not checked, because DNS does not list selectors'
    return warning(message, 'npm run doctor -- --dkim-selector NAME, as in s= of DKIM-Signature')
  }
  const name = `${selector}._domainkey.${domain}`
  const texts = await textsOf(resolver, name)
  if (!texts) return warning(`DNS gave no answer for ${name}`, 'check the DNS resolver')
  const record = texts.find((text) => tagOf(text, 'p') !== undefined)
  if (record === undefined) return error(`no DKIM key at ${name}`, 'publish it')
  if (tagOf(record, 'p') === '')
    return error(`the DKIM key at ${name} is revoked`, 'publish a new one')
  return ok(`DKIM key found at ${name}`)
}

async function examineDmarc(resolver: DnsResolver, domain: string): Promise<Finding> {
  const { ok, warning, error } = subjectOf(domain)
  // The record of the domain, or else of its nearest parent.
  for (let at = domain; at.includes('.'); at = at.slice(at.indexOf('.') + 1)) {
    const texts = await textsOf(resolver, `_dmarc.${at}`)
    if (!texts)
      return warning('DNS gave no answer about its DMARC record', 'check the DNS resolver')
    const record = texts.find((text) => /^v=DMARC1\s*(;|$)/i.test(text))
    if (record === undefined) continue
    const policy = tagOf(record, 'p')?.toLowerCase()
    if (!['none', 'quarantine', 'reject'].includes(policy ?? ''))
      return error(`the DMARC record at _dmarc.${at} has no p=`, 'add p=quarantine')
    return policy === 'none'
      ? warning('DMARC has p=none: receivers accept forged senders', 'set p=quarantine or p=reject')
      : ok(`DMARC has p=${policy}`)
  }
  return error(
    'no DMARC record: large mail providers refuse bulk mail without one',
    `publish _dmarc.${domain}: v=DMARC1; p=quarantine`,
  )
}

/** A value of a record such as `v=DMARC1; p=none`. */
function tagOf(record: string, tag: string): string | undefined {
  const tags = record.split(';').map((part) => part.split('=').map((side) => side.trim()))
  return tags.find(([name]) => name?.toLowerCase() === tag)?.[1]
}

/** Empty for no records, undefined without a clear answer. */
async function textsOf(resolver: DnsResolver, name: string): Promise<string[] | undefined> {
  try {
    return (await resolver.resolveTxt(name)).map((pieces) => pieces.join(''))
  } catch (error) {
    const { code = '' } = error as { code?: string }
    return ['ENODATA', 'ENOTFOUND'].includes(code) ? [] : undefined
  }
}

/** With `checkMx`, a resolver that sees no public domains would refuse every mail. */
export async function examineCheckMx(resolver: DnsResolver): Promise<Finding[]> {
  const { ok, warning, error } = about('checkMx')
  const answer = await findMailServers(resolver, knownDomain)
  if (answer === 'takes_mail') return [ok('DNS answers for public domains')]
  const advice = 'check the DNS resolver, or set recipients.mail.checkMx to false'
  return answer === 'takes_none'
    ? [
        error(
          `DNS reports no mail server for ${knownDomain}, so every mail would be refused`,
          advice,
        ),
      ]
    : [warning('DNS gives no answer, so no domain is refused', advice)]
}

const knownDomain = 'gmail.com'
