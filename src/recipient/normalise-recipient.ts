/**
 * Recipients at the door: every spelling of one number or address becomes one, because the limits
 * count what comes out of here, and nothing comes out that a provider could read as two recipients.
 */
import { domainToASCII } from 'node:url'
import type { Channel } from '../base/channel.ts'
import { createPhoneReader } from './phone-number.ts'

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

export function createRecipientNormaliser(rules: RecipientRules) {
  const readPhoneNumber = createPhoneReader(rules.defaultCountry)

  return function normaliseRecipient(channel: Channel, to: string): RecipientResult {
    if (channel === 'email') {
      const address = normaliseEmail(to)
      return address ? { kind: 'ok', to: address, country: '' } : { kind: 'invalid' }
    }
    const number = readPhoneNumber(to)
    if (!number) return { kind: 'invalid' }
    const isAllowed = rules.countries?.includes(number.country) ?? true
    return isAllowed ? { kind: 'ok', ...number } : { kind: 'not_allowed', to: number.to }
  }
}

const maxAddressLength = 254
const maxLocalLength = 64
/** Before it is put in lower case, which would make an ASCII k of the sign for kelvin: another mailbox. */
const local =
  /^[a-z0-9!#$%&'*+/=?^_`{|}~][a-z0-9!#$%&'*+/=?^_`{|}~-]*(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/i
const domain =
  /^(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+(?!\d+$)[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$/

/** One plain addr-spec in lower case with the domain in ASCII; no quotes, comments, lists or IP literals. */
function normaliseEmail(to: string): string | undefined {
  if (to.length > maxAddressLength) return undefined
  const at = to.lastIndexOf('@')
  const localPart = to.slice(0, at)
  const given = to.slice(at + 1).toLowerCase()
  // Only letters, digits and what joins them: domainToASCII would quietly drop or map the rest.
  if (at < 1 || localPart.length > maxLocalLength || !/^[\p{L}\p{M}\p{N}.-]+$/u.test(given))
    return undefined
  const domainPart = domainToASCII(given)
  if (!local.test(localPart) || !domain.test(domainPart)) return undefined
  const address = `${localPart.toLowerCase()}@${domainPart}`
  return address.length <= maxAddressLength ? address : undefined
}
