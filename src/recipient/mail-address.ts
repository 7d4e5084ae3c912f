/** Mail addresses as a kind of address. */
import { domainToASCII, domainToUnicode } from 'node:url'
import type { AddressKind, ReadAddress } from './address-kind.ts'
import { foldedText, plainText } from './plain-text.ts'

export const mailAddress: AddressKind = {
  insteadOf: 'is_address',

  isWritten: (text) => readEmailAddress(text) !== undefined,

  createReader({ mail }) {
    const refused = new Set(mail?.refuse)
    return function readMailAddress(text): ReadAddress | 'no_address' {
      const to = readEmailAddress(text)
      if (to === undefined) return 'no_address'
      const read = { to, country: '' }
      return isWithin(refused, domainOf(to))
        ? { ...read, problem: { kind: 'not_allowed', because: 'mail_domain' } }
        : read
    }
  },

  mask: (to) => `${to.slice(0, 1)}***@${domainOf(to)}`,
  maskSql: (column) => `left(${column}, 1) || '***@' || split_part(${column}, '@', -1)`,
  hasCountries: false,
  placeOf: () => ({ country: '' }),
  prefixOf: domainOf,
  mailboxOf,
  blockOf: mailboxOf,
  domainOf,

  isNamedIn(text, spellings) {
    const folded = foldedText(text)
    return spellings
      .flatMap((address) => [address, inUnicode(address)])
      .some((address) => folded.includes(foldedText(address)))
  },
  isNamedInSql: (text, column) => `strpos(lower(${text}), lower(${column})) > 0`,
}

function domainOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1)
}

/** Google treats both as the same domain. */
const gmailDomains = new Set(['gmail.com', 'googlemail.com'])

/**
 * The address without a plus-tag, and for Gmail without dots. For a few servers the plus sign has no meaning. There,
 * several people share one count.
 */
function mailboxOf(to: string): string {
  const at = to.lastIndexOf('@')
  const [local = ''] = to.slice(0, at).split('+', 1)
  const domain = domainOf(to)
  if (!gmailDomains.has(domain)) return `${local || to.slice(0, at)}@${domain}`
  return `${local.replaceAll('.', '')}@gmail.com`
}

/** True if `domain` is in the set or below one of its domains. Needs one look-up per label. */
function isWithin(domains: ReadonlySet<string>, domain: string): boolean {
  for (let rest = domain; ; rest = rest.slice(rest.indexOf('.') + 1)) {
    if (domains.has(rest)) return true
    if (!rest.includes('.')) return false
  }
}

function inUnicode(address: string): string {
  const at = address.lastIndexOf('@') + 1
  return address.slice(0, at) + domainToUnicode(address.slice(at))
}

const maxAddressLength = 254
const maxLocalLength = 64
/** With what is removed from it. */
const maxWrittenLength = 2 * maxAddressLength
/** Matched before lower case is applied, which would turn the kelvin sign into an ASCII k: another mailbox. */
const local =
  /^[a-z0-9!#$%&'*+/=?^_`{|}~][a-z0-9!#$%&'*+/=?^_`{|}~-]*(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/i
const domain =
  /^(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+(?!\d+$)[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$/

/** One plain addr-spec in lower case with the domain in ASCII. Quotes, comments, lists and IP literals are refused. */
export function readEmailAddress(written: string): string | undefined {
  if (written.length > maxWrittenLength) return undefined
  // East Asian keyboards write a wide @, and full stops that stand for dots in domains
  // (https://www.unicode.org/reports/tr46/#Notation). A domain may end with the dot of the root.
  const text = plainText(written, 'mailto')
    .replaceAll(/[＠﹫]/g, '@')
    .replaceAll(/[。．｡](?=[^@]*$)/g, '.')
    .replace(/\.$/, '')
  if (text.length > maxAddressLength) return undefined
  const at = text.lastIndexOf('@')
  const localPart = text.slice(0, at)
  const given = text.slice(at + 1).toLowerCase()
  // Only letters, digits, dots and hyphens: domainToASCII would silently drop or map other characters.
  if (at < 1 || localPart.length > maxLocalLength || !/^[\p{L}\p{M}\p{N}.-]+$/u.test(given))
    return undefined
  const domainPart = domainToASCII(given)
  if (!local.test(localPart) || !domain.test(domainPart)) return undefined
  const address = `${localPart.toLowerCase()}@${domainPart}`
  return address.length <= maxAddressLength ? address : undefined
}
