/**
 * Normalises recipients: every spelling of a number or address becomes one, because limits count the result. A provider
 * can't read the result as two recipients.
 */
import { type Channel, channels } from '../base/channel.ts'
import { suppressionReasons } from '../base/suppression.ts'
import type {
  AddressKind,
  Invalid,
  InvalidBecause,
  NotAllowedBecause,
  RecipientRules,
} from './address-kind.ts'
import { addressKindOf, addressKinds, channelFacts } from './channels.ts'

export type RecipientResult =
  | { kind: 'ok'; to: string; country: string }
  | Invalid
  /** The operator's settings forbid this recipient. */
  | { kind: 'not_allowed'; to: string; country: string; because: NotAllowedBecause }

export type RefusedRecipient =
  /** `no_server`: the domain of the address accepts no mail. */
  | { outcome: 'invalid_recipient'; because: InvalidBecause | 'no_server' }
  /** Without a reason for callers in pages, if a report about the recipient forbids it. */
  | { outcome: 'destination_not_allowed'; reason?: NotAllowedReason }

export const notAllowedReasons = [
  ...(['country', 'type', 'mail', 'refused'] as const),
  ...suppressionReasons,
] as const
type NotAllowedReason = (typeof notAllowedReasons)[number]

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

export function createRecipientNormaliser(
  rules: RecipientRules,
  /** Test recipients pass all of these rules: nothing is sent to them. */
  isTestRecipient: (to: string) => boolean = () => false,
  /** Takes a number, or the mailbox of an address. */
  isRefused: (mailbox: string) => boolean = () => false,
) {
  const readers = new Map(
    channels.map((channel) => {
      const { address, numberTypes } = channelFacts(channel)
      return [channel, address.createReader(rules, numberTypes)]
    }),
  )
  const readerOf = (channel: Channel) =>
    readers.get(channel) as ReturnType<AddressKind['createReader']>

  return function normaliseRecipient(channel: Channel, text: string): RecipientResult {
    const kind = addressKindOf(channel)
    const read = readerOf(channel)(text)
    if (typeof read === 'string') {
      const written = addressKinds.find((other) => other !== kind && other.isWritten(text))
      return { kind: 'invalid', because: written?.insteadOf ?? read }
    }
    const { to, country, problem } = read
    if (isTestRecipient(to)) return { kind: 'ok', to, country }
    if (isRefused(kind.mailboxOf(to))) {
      return { kind: 'not_allowed', to, country, because: 'recipient' }
    }
    if (problem?.kind === 'invalid') return problem
    return problem ? { ...problem, to, country } : { kind: 'ok', to, country }
  }
}

/**
 * Normalises a recipient of the policy file, of any kind of address. Undefined for a text that is neither number
 * nor address. The number need not be in use. `mailbox`: the form that `isRefused` takes.
 */
export function readAddress(
  text: string,
  defaultCountry?: string,
): { kind: AddressKind; to: string; mailbox: string } | undefined {
  for (const kind of addressKinds) {
    const read = kind.createReader({ defaultCountry })(text)
    if (typeof read !== 'string') return { kind, to: read.to, mailbox: kind.mailboxOf(read.to) }
  }
  return undefined
}
