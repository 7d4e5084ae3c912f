/**
 * Recipients at the door: every spelling of one number or address becomes one, because the limits
 * count what comes out of here, and nothing comes out that a provider could read as two recipients.
 */
import type { Channel } from '../base/channel.ts'
import type { NumberType } from '../base/number-types.ts'
import { readEmailAddress } from './email-address.ts'
import { domainOf } from './facets.ts'
import { createPhoneReader, isNationalNumber } from './phone-number.ts'

export interface RecipientRules {
  /** For numbers written without a country code. */
  defaultCountry?: string | undefined
  /** Where messages may go; everywhere when absent. */
  countries?: readonly string[] | undefined
  /** The numbers that get SMS; those that do as a rule, when absent. */
  types?: readonly NumberType[] | undefined
  /** `refuse`: domains that get no mail, nor do those below them; in lower-case ASCII. */
  mail?: { readonly refuse: readonly string[] } | undefined
}

export type RecipientResult =
  | { kind: 'ok'; to: string; country: string }
  /** No message can go there. `no_country`: a number of which nothing says in which country it is. */
  | { kind: 'invalid'; because?: 'no_country' }
  /** One could, but the operator wants none to. */
  | { kind: 'not_allowed'; to: string; country: string; because: NotAllowedBecause }

/** What of a destination the operator has not allowed. */
export const notAllowedBecause = ['country', 'type', 'mail_domain'] as const
export type NotAllowedBecause = (typeof notAllowedBecause)[number]

/** The same as an outcome. */
export type RefusedRecipient =
  | { outcome: 'invalid_recipient'; because?: 'no_country' }
  | { outcome: 'destination_not_allowed'; reason: 'country' | 'type' | 'mail' }

export function refusedRecipient(
  result: Exclude<RecipientResult, { kind: 'ok' }>,
): RefusedRecipient {
  const { kind, because } = result
  if (kind === 'invalid') return { outcome: 'invalid_recipient', ...(because ? { because } : {}) }
  const reason = because === 'mail_domain' ? 'mail' : because
  return { outcome: 'destination_not_allowed', reason }
}

export type NormaliseRecipient = ReturnType<typeof createRecipientNormaliser>

/** Landlines and the rest would be paid for and read by nobody; who has them texted says so in `types`. */
const typesByDefault: readonly NumberType[] = ['mobile', 'fixed_line_or_mobile', 'voip']

export function createRecipientNormaliser(
  rules: RecipientRules,
  /** These pass whatever the rules say: nothing is sent to them. */
  isTestRecipient: (channel: Channel, to: string) => boolean = () => false,
) {
  const readPhoneNumber = createPhoneReader(rules.defaultCountry)
  const countries = rules.countries && new Set(rules.countries)
  const types: ReadonlySet<string> = new Set(rules.types ?? typesByDefault)
  const refusedDomains = new Set(rules.mail?.refuse)

  function normaliseEmail(text: string): RecipientResult {
    const to = readEmailAddress(text)
    if (to === undefined) return { kind: 'invalid' }
    const isRefused = isWithin(refusedDomains, domainOf(to))
    return isRefused && !isTestRecipient('email', to)
      ? { kind: 'not_allowed', to, country: '', because: 'mail_domain' }
      : { kind: 'ok', to, country: '' }
  }

  const isNational = (text: string) => !rules.defaultCountry && isNationalNumber(text)

  function normaliseNumber(text: string): RecipientResult {
    const number = readPhoneNumber(text)
    if (!number)
      return isNational(text) ? { kind: 'invalid', because: 'no_country' } : { kind: 'invalid' }
    const { to, country, type } = number
    if (isTestRecipient('sms', to)) return { kind: 'ok', to, country }
    // What nobody has decided is no matter of permission: such a number simply takes no message.
    if (type === undefined || (!rules.types && !types.has(type))) return { kind: 'invalid' }
    if (countries && !countries.has(country)) {
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

/** Whether a domain is one of these or below one: as many look-ups as it has labels, however many there are. */
function isWithin(domains: ReadonlySet<string>, domain: string): boolean {
  for (let rest = domain; ; rest = rest.slice(rest.indexOf('.') + 1)) {
    if (domains.has(rest)) return true
    if (!rest.includes('.')) return false
  }
}
