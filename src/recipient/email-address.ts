import { domainToASCII } from 'node:url'
import { plainText } from './plain-text.ts'

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
