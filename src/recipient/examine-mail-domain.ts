/**
 * Reports if receivers trust mails of a sender's domain. They look up its SPF (RFC 7208), DKIM (RFC 6376) and DMARC (RFC
 * 7489) records in DNS. Many refuse a sender whose domain accepts no mail.
 */
import { createPublicKey, type KeyObject } from 'node:crypto'
import { commandLine } from '../base/command-line.ts'
import { about, type Finding } from '../base/finding.ts'
import { type DnsResolver, findMailServers } from './mail-domains.ts'
import { type Dmarc, findDmarc, tagsOf, textsOf } from './mail-records.ts'

/** A key that signs the mails. Its selector must be known, because DNS does not list selectors. */
export interface Signer {
  readonly domain: string
  readonly selector: string
  /** The key that signs, if Postern has it. */
  readonly privateKey?: KeyObject
}

export interface MailSender {
  readonly signers: readonly Signer[]
  /** True if the envelope of mails has this domain. SES puts another domain there, whose SPF is checked. */
  readonly isInEnvelope: boolean
}

export async function examineMailDomain(
  resolver: DnsResolver,
  domain: string,
  { signers, isInEnvelope }: MailSender,
): Promise<Finding[]> {
  const dmarc = findDmarc(resolver, domain)
  const found = await Promise.all([
    examineMx(resolver, domain),
    isInEnvelope ? examineSpf(resolver, domain) : spfNeedless(domain),
    ...(signers.length > 0 ? [] : [dkimUnknown(domain, isInEnvelope)]),
    ...signers.map((signer) => examineDkimKey(resolver, domain, signer)),
    dmarc.then((record) => examineDmarc(domain, record)),
    ...signers
      .filter(({ privateKey }) => privateKey)
      .map(async (signer) => examineAlignment(resolver, domain, signer, await dmarc)),
  ])
  return found
}

const subjectOf = (domain: string) => about(`mail from ${domain}`)

const noAnswer = (domain: string, what: string) =>
  subjectOf(domain).warning(`DNS gave no answer ${what}`, 'check the DNS resolver')

async function examineMx(resolver: DnsResolver, domain: string): Promise<Finding> {
  const { ok, error } = subjectOf(domain)
  const answer = await findMailServers(resolver, domain)
  if (answer === 'takes_mail') return ok('accepts mail')
  if (answer === 'uncertain') return noAnswer(domain, 'about its mail servers')
  const message =
    'accepts no mail (null MX, or neither MX nor address), so many receivers refuse its mails'
  return error(message, 'publish an MX for it')
}

async function examineSpf(resolver: DnsResolver, domain: string): Promise<Finding> {
  const { ok, error } = subjectOf(domain)
  const texts = await textsOf(resolver, domain)
  if (!texts) return noAnswer(domain, 'about its SPF record')
  const [record, ...others] = texts.filter((text) => /^v=spf1(\s|$)/i.test(text))
  if (record === undefined) return error('no SPF record', 'publish one, e.g. v=spf1 include:… -all')
  if (others.length > 0)
    return error('two SPF records, so receivers ignore both', 'join them into one')
  if (/\s\+?all(\s|$)/i.test(record)) {
    return error('its SPF record lets every server send', 'end it with -all or ~all')
  }
  return ok(
    'SPF record found, and it aligns with the envelope. Check that it names your mail server',
  )
}

const spfNeedless = (domain: string): Finding =>
  subjectOf(domain).ok('SPF is not needed: SES sends with another envelope, so DKIM must align')

function dkimUnknown(domain: string, canSign: boolean): Finding {
  const message = 'DKIM is not checked, because DNS does not list selectors'
  const option = commandLine('doctor', '--dkim-selector NAME')
  const advice = canSign
    ? `set dkim of the provider, or run ${option} with the name after s= in DKIM-Signature`
    : `run ${option} with one of the three names that SES shows for this identity`
  return subjectOf(domain).warning(message, advice)
}

async function examineDkimKey(
  resolver: DnsResolver,
  domain: string,
  signer: Signer,
): Promise<Finding> {
  const { ok, warning, error } = subjectOf(domain)
  const name = `${signer.selector}._domainkey.${signer.domain}`
  const texts = await textsOf(resolver, name)
  if (!texts) return noAnswer(domain, `for ${name}`)
  const [record, ...others] = texts.map(tagsOf).filter((tags) => tags.has('p'))
  const advice = adviceFor(signer)
  if (record === undefined) return error(`no DKIM key at ${name}`, advice)
  if (others.length > 0) return error(`two DKIM keys at ${name}`, advice)
  if (record.get('p') === '') return error(`the DKIM key at ${name} is revoked`, advice)
  const { privateKey } = signer
  if (!privateKey) return ok(`DKIM key found at ${name}`)
  if (!isPublished(privateKey, record.get('p') ?? '')) {
    return error(`the DKIM key at ${name} is not the one that signs`, advice)
  }
  const isForMails = allows(record.get('h'), 'sha256') && allows(record.get('s'), 'email')
  if (!isForMails) return error(`the DKIM key at ${name} is not for mails with SHA-256`, advice)
  return record.get('t')?.split(':').includes('y')
    ? warning(`the DKIM key at ${name} is for tests (t=y): receivers ignore it`, 'remove t=y')
    : ok(`the DKIM key at ${name} is the one that signs`)
}

/** True if a list such as `sha1:sha256` has this value. Without a list every value is allowed. */
const allows = (list = '*', value: string) =>
  list.split(':').some((one) => ['*', value].includes(one.trim().toLowerCase()))

function adviceFor({ privateKey }: Signer): string {
  const key = privateKey && createPublicKey(privateKey).export({ type: 'spki', format: 'der' })
  return key ? `publish v=DKIM1; k=rsa; p=${key.toString('base64')}` : 'publish a new one'
}

/** RFC 6376 allows an RSA key in two forms: SPKI and PKCS #1. */
function isPublished(privateKey: KeyObject, published: string): boolean {
  const key = createPublicKey(privateKey)
  const bytes = Buffer.from(published, 'base64')
  return (['spki', 'pkcs1'] as const).some((type) =>
    key.export({ type, format: 'der' }).equals(bytes),
  )
}

function examineDmarc(domain: string, dmarc: Dmarc | undefined): Finding {
  const { ok, warning, error } = subjectOf(domain)
  if (!dmarc) return noAnswer(domain, 'about its DMARC record')
  if (!dmarc.record) {
    return error(
      'no DMARC record: large mail providers refuse bulk mail without one',
      `publish _dmarc.${domain}: v=DMARC1; p=quarantine`,
    )
  }
  const { at, tags } = dmarc.record
  const ownTag = at === domain || !tags.has('sp') ? 'p' : 'sp'
  const policy = tags.get(ownTag)?.toLowerCase() ?? ''
  if (!['none', 'quarantine', 'reject'].includes(policy))
    return error(`the DMARC record at _dmarc.${at} has no p=`, 'add p=quarantine')
  const message = `DMARC has ${ownTag}=${policy}`
  return policy === 'none'
    ? warning(
        `${message}: receivers accept forged senders`,
        `set ${ownTag}=quarantine or ${ownTag}=reject`,
      )
    : ok(message)
}

/** Receivers count a signature for DMARC only if its domain is aligned with `from`. */
async function examineAlignment(
  resolver: DnsResolver,
  domain: string,
  signer: Signer,
  dmarc: Dmarc | undefined,
): Promise<Finding> {
  const { ok, error } = subjectOf(domain)
  if (signer.domain === domain) return ok('DKIM aligns with this domain')
  const isStrict = dmarc?.record?.tags.get('adkim')?.toLowerCase() === 's'
  const other = await findDmarc(resolver, signer.domain)
  if (!dmarc || !other) return noAnswer(domain, `about DMARC of ${signer.domain}`)
  return !isStrict && other.organisation === dmarc.organisation
    ? ok(`DKIM of ${signer.domain} aligns with it, because both belong to ${dmarc.organisation}`)
    : error(
        `DKIM of ${signer.domain} does not align with it${isStrict ? ' (adkim=s)' : ''}`,
        `sign with domain: ${domain}`,
      )
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
