/** Twilio's names of the channels of Postern. */
import type { Channel } from '../../base/channel.ts'

const channels = { sms: 'sms', email: 'email', call: 'voice', whatsapp: 'whatsapp' } as const

/** Undefined for a channel that Postern does not have. */
export const channelNamed = (name: string): Channel | undefined =>
  Object.hasOwn(channels, name) ? channels[name as keyof typeof channels] : undefined

/** A channel that Twilio does not have keeps its name. */
export const nameOf = (channel: Channel): string =>
  Object.entries(channels).find(([, own]) => own === channel)?.[0] ?? channel
