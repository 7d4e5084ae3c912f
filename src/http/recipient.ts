/**
 * Recipients at the door: every spelling of one number or address becomes one, because the limits
 * count what comes out of here, and nothing comes out that a provider could read as two recipients.
 *
 * libphonenumber alone is too kind (full-width digits, trailing line breaks, markup around a number),
 * so a strict pattern comes first.
 */
import { domainToASCII } from 'node:url'
import { type CountryCode, parsePhoneNumberFromString } from 'libphonenumber-js/max'

export interface RecipientRules {
  /** For numbers written without a country code. */
  defaultCountry?: string
  /** Where messages may go; everywhere when absent. */
  countries?: readonly string[]
}

export type RecipientResult =
  | { kind: 'ok'; to: string; country: string }
  | { kind: 'invalid' }
  | { kind: 'not_allowed'; to: string }

export type NormaliseRecipient = ReturnType<typeof createRecipientNormaliser>

/** Reading a phone number is the dearest step of a refusal, and whoever is refused comes again. */
const maxRemembered = 1_000

export function createRecipientNormaliser(rules: RecipientRules) {
  let remembered = new Map<string, RecipientResult>()

  return function normaliseRecipient(channel: 'sms' | 'email', to: string): RecipientResult {
    if (channel === 'email') {
      const address = normaliseEmail(to)
      return address ? { kind: 'ok', to: address, country: '' } : { kind: 'invalid' }
    }
    let result = remembered.get(to)
    if (!result) {
      result = normalisePhone(to, rules)
      if (remembered.size >= maxRemembered) remembered = new Map()
      remembered.set(to, result)
    }
    return result
  }
}

/** Numbers that can take a message: no landlines, premium, shared-cost, satellite or short ones. */
const textableTypes = new Set(['MOBILE', 'FIXED_LINE_OR_MOBILE', 'VOIP'])

function normalisePhone(to: string, rules: RecipientRules): RecipientResult {
  if (!/^(\+|00)?\(?[0-9][0-9 ().-]{4,24}$/.test(to)) return { kind: 'invalid' }
  const international = to.startsWith('00') ? `+${to.slice(2)}` : to
  const number = parsePhoneNumberFromString(international, {
    ...(rules.defaultCountry ? { defaultCountry: rules.defaultCountry as CountryCode } : {}),
    extract: false,
  })
  // A number that is not valid has no type.
  const type = number?.getType()
  if (!number || !type || number.ext || !textableTypes.has(type)) return { kind: 'invalid' }
  const country = number.country
  if (!country) return { kind: 'invalid' }
  if (rules.countries && !rules.countries.includes(country))
    return { kind: 'not_allowed', to: number.number }
  return { kind: 'ok', to: number.number, country }
}

const maxAddressLength = 254
const maxLocalLength = 64
const local =
  /^[a-z0-9!#$%&'*+/=?^_`{|}~][a-z0-9!#$%&'*+/=?^_`{|}~-]*(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/
const domain =
  /^(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+(?!\d+$)[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$/

/** One plain addr-spec in lower case with the domain in ASCII; no quotes, comments, lists or IP literals. */
function normaliseEmail(to: string): string | undefined {
  if (to.length > maxAddressLength) return undefined
  const at = to.lastIndexOf('@')
  const localPart = to.slice(0, at).toLowerCase()
  const given = to.slice(at + 1).toLowerCase()
  // Only letters, digits and what joins them: domainToASCII would quietly drop or map the rest.
  if (at < 1 || localPart.length > maxLocalLength || !/^[\p{L}\p{M}\p{N}.-]+$/u.test(given))
    return undefined
  const domainPart = domainToASCII(given)
  if (!local.test(localPart) || !domain.test(domainPart)) return undefined
  const address = `${localPart}@${domainPart}`
  return address.length <= maxAddressLength ? address : undefined
}
