/**
 * Normalises recipients: every spelling of a number or address becomes one, because limits count the result. A provider
 * can't read the result as two recipients.
 */
import type { Channel } from '../base/channel.ts'
import type { NumberType } from '../base/number-types.ts'
import { readEmailAddress } from './email-address.ts'
import { createPhoneReader, isNationalNumber, isNumberText, mayBeOf } from './phone-number.ts'
import { plainText } from './plain-text.ts'

export interface RecipientRules {
  /** For numbers written without a country code. */
  defaultCountry?: string | undefined
  /** Countries that may get messages; all if absent. */
  countries?: readonly string[] | undefined
  /** Number types that get SMS; a default list if absent. */
  types?: readonly NumberType[] | undefined
  /** Beginnings of numbers that count as mobile numbers although the numbering plans do not know them yet. */
  allow?: readonly string[] | undefined
  /** `refuse`: domains that get no mail, with all their subdomains, in lower-case ASCII. */
  mail?: { readonly refuse: readonly string[] } | undefined
}

export type RecipientResult =
  | { kind: 'ok'; to: string; country: string }
  /** No message can go there. */
  | { kind: 'invalid'; because: InvalidBecause }
  /** The operator's settings forbid this recipient. */
  | { kind: 'not_allowed'; to: string; country: string; because: NotAllowedBecause }

/**
 * `no_country`: the country of the number is unknown. `type`: a landline, for example. `is_address`, `is_number`: it belongs to
 * the other channel.
 */
type InvalidBecause =
  | 'no_country'
  | 'type'
  | 'no_number'
  | 'no_address'
  | 'is_address'
  | 'is_number'

/** The settings that can forbid a recipient. */
export const notAllowedBecause = ['country', 'type', 'mail_domain', 'recipient'] as const
export type NotAllowedBecause = (typeof notAllowedBecause)[number]

export type RefusedRecipient =
  /** `no_server`: the domain of the address accepts no mail. */
  | { outcome: 'invalid_recipient'; because: InvalidBecause | 'no_server' }
  | { outcome: 'destination_not_allowed'; reason: 'country' | 'type' | 'mail' | 'refused' }

const reasonOf = {
  country: 'country',
  type: 'type',
  mail_domain: 'mail',
  recipient: 'refused',
} as const

export function refusedRecipient(
  result: Exclude<RecipientResult, { kind: 'ok' }>,
): RefusedRecipient {
  const { kind, because } = result
  if (kind === 'invalid') return { outcome: 'invalid_recipient', because }
  return { outcome: 'destination_not_allowed', reason: reasonOf[because] }
}

export type NormaliseRecipient = ReturnType<typeof createRecipientNormaliser>

/** SMS to landlines and other types would cost money and reach no person. Operators can list them in `types`. */
const typesByDefault: readonly NumberType[] = ['mobile', 'fixed_line_or_mobile', 'voip']

export function createRecipientNormaliser(
  rules: RecipientRules,
  /** Test recipients pass all of these rules: nothing is sent to them. */
  isTestRecipient: (to: string) => boolean = () => false,
  /** Takes a number, or the mailbox of an address. */
  isRefused: (mailbox: string) => boolean = () => false,
) {
  const readPhoneNumber = createPhoneReader(rules.defaultCountry, rules.allow)
  const countries = rules.countries && new Set(rules.countries)
  const isAllowedIn = (country: string, to: string) =>
    !countries || countries.has(country) || [...countries].some((each) => mayBeOf(each, to))
  const types: ReadonlySet<string> = new Set(rules.types ?? typesByDefault)
  const refusedDomains = new Set(rules.mail?.refuse)

  function normaliseEmail(text: string): RecipientResult {
    const to = readEmailAddress(text)
    if (to === undefined) {
      return {
        kind: 'invalid',
        because: isNumberText(plainText(text, 'tel')) ? 'is_number' : 'no_address',
      }
    }
    if (isTestRecipient(to)) return { kind: 'ok', to, country: '' }
    if (isRefused(mailboxOf('email', to))) {
      return { kind: 'not_allowed', to, country: '', because: 'recipient' }
    }
    return isWithin(refusedDomains, domainOf(to))
      ? { kind: 'not_allowed', to, country: '', because: 'mail_domain' }
      : { kind: 'ok', to, country: '' }
  }

  function whyNoNumber(text: string): InvalidBecause {
    if (readEmailAddress(text) !== undefined) return 'is_address'
    return !rules.defaultCountry && isNationalNumber(text) ? 'no_country' : 'no_number'
  }

  function normaliseNumber(written: string): RecipientResult {
    const text = plainText(written, 'tel')
    const number = readPhoneNumber(text)
    if (!number) return { kind: 'invalid', because: whyNoNumber(text) }
    const { to, country, type } = number
    if (isTestRecipient(to)) return { kind: 'ok', to, country }
    if (isRefused(to)) return { kind: 'not_allowed', to, country, because: 'recipient' }
    // Not a refusal by the operator's settings: such a number can't get messages.
    if (type === undefined) return { kind: 'invalid', because: 'no_number' }
    if (!rules.types && !types.has(type)) return { kind: 'invalid', because: 'type' }
    if (!isAllowedIn(country, to)) {
      return { kind: 'not_allowed', to, country, because: 'country' }
    }
    return types.has(type)
      ? { kind: 'ok', to, country }
      : { kind: 'not_allowed', to, country, because: 'type' }
  }

  return function normaliseRecipient(channel: Channel, to: string): RecipientResult {
    return channel === 'email' ? normaliseEmail(to) : normaliseNumber(to)
  }
}

/** True if `domain` is in the set or below one of its domains. Needs one look-up per label. */
function isWithin(domains: ReadonlySet<string>, domain: string): boolean {
  for (let rest = domain; ; rest = rest.slice(rest.indexOf('.') + 1)) {
    if (domains.has(rest)) return true
    if (!rest.includes('.')) return false
  }
}

/** A phone number without its last four digits, or a mail's domain: the common part of an attacker's addresses. */
export function prefixOf(channel: Channel, to: string): string {
  return channel === 'sms' ? to.slice(0, -4) : domainOf(to)
}

export const domainOf = (address: string) => address.slice(address.lastIndexOf('@') + 1)

/** Google treats both as the same domain. */
const gmailDomains = new Set(['gmail.com', 'googlemail.com'])

/**
 * The mailbox of an address: without a plus-tag, and for Gmail without dots. For a few servers the plus sign has no
 * meaning. There, several people share one count.
 */
export function mailboxOf(channel: Channel, to: string): string {
  if (channel === 'sms') return to
  const at = to.lastIndexOf('@')
  const [local = ''] = to.slice(0, at).split('+', 1)
  const domain = to.slice(at + 1)
  if (!gmailDomains.has(domain)) return `${local || to.slice(0, at)}@${domain}`
  return `${local.replaceAll('.', '')}@gmail.com`
}
