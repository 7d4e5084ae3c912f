/**
 * The channels: the ways by which a message reaches a person. What differs between them is a member here, and everything
 * else asks this table. So a new channel is its name in `base/channel.ts` and one entry.
 */
import { type Channel, channels } from '../base/channel.ts'
import type { NumberType } from '../base/number-types.ts'
import { Unavailable } from '../base/unavailable.ts'
import type { AddressKind } from './address-kind.ts'
import { mailAddress } from './mail-address.ts'
import { phoneNumber } from './phone-address.ts'

interface ChannelFacts {
  /** The kind of the recipients' addresses. */
  readonly address: AddressKind
  /** Parts of a message that its templates have besides the text. */
  readonly parts: readonly ('subject' | 'listUnsubscribe' | 'html')[]
  /** The text travels as SMS: it is paid for by its length, and browsers read its last line (WebOTP). */
  readonly isSms: boolean
  /** The text is read aloud, so the digits of a code stand apart. */
  readonly isSpoken?: true
  /** The channel with the text for a locale that has no text for this channel. */
  readonly textsOf?: Channel
  /** Types of numbers that get messages if the operator lists none. */
  readonly numberTypes?: readonly NumberType[]
}

/** Messages to landlines and other types would cost money and reach no person. Operators can list them in `types`. */
const mobileTypes: readonly NumberType[] = ['mobile', 'fixed_line_or_mobile', 'voip']

const toPhone = { address: phoneNumber, parts: [], isSms: false, numberTypes: mobileTypes } as const

const facts: Readonly<Record<Channel, ChannelFacts>> = {
  sms: { ...toPhone, isSms: true },
  email: { address: mailAddress, parts: ['subject', 'listUnsubscribe', 'html'], isSms: false },
  voice: {
    ...toPhone,
    isSpoken: true,
    textsOf: 'sms',
    numberTypes: [...mobileTypes, 'fixed_line'],
  },
  whatsapp: { ...toPhone, textsOf: 'sms' },
  telegram: { ...toPhone, textsOf: 'sms' },
}

/** False for a channel of a newer Postern, whose rows an older one can meet. */
export const isChannel = (name: string): name is Channel => Object.hasOwn(facts, name)

/** Throws Unavailable for a channel of a newer Postern: a newer process can do the work of the caller. */
export function channelFacts(channel: Channel): ChannelFacts {
  if (isChannel(channel)) return facts[channel]
  throw new Unavailable('process', undefined, `only a newer Postern knows the channel ${channel}`)
}

export const addressKindOf = (channel: Channel): AddressKind => channelFacts(channel).address

/** The channel that stands for all channels to the same kind of address, where they have something in common. */
export const firstChannelTo = (channel: Channel): Channel =>
  channels.find((other) => addressKindOf(other) === addressKindOf(channel)) ?? channel

export const addressKinds: readonly AddressKind[] = [...new Set(channels.map(addressKindOf))]

/** The channels that lead to addresses of this kind. */
export const channelsOfKind = (kind: AddressKind): Channel[] =>
  channels.filter((channel) => addressKindOf(channel) === kind)

/** The channels that lead to addresses of the kind in which a text is written. Empty for another text. */
export function channelsFor(text: string): Channel[] {
  return channels.filter((channel) => addressKindOf(channel).isWritten(text))
}

/** The masked form in answers. Nothing is shown for a channel that this build does not know. */
export const maskRecipient = (channel: string, to: string): string =>
  isChannel(channel) ? addressKindOf(channel).mask(to) : '***'

/** An expression of SQL for the channel's kind of address. It is null for a channel that this build does not know. */
export function byChannelSql(column: string, sqlOf: (kind: AddressKind) => string): string {
  const cases = channels.map((name) => `WHEN '${name}' THEN ${sqlOf(addressKindOf(name))}`)
  return `CASE ${column} ${cases.join(' ')} END`
}
