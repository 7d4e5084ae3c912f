/** The channels that a field can offer. All but mail go to a phone number. */
const channels = ['sms', 'email', 'voice', 'whatsapp', 'telegram'] as const

export type Channel = (typeof channels)[number]

export const isChannel = (name: string): name is Channel =>
  (channels as readonly string[]).includes(name)

/** The kind of address, by the name of its first channel. Channels of one kind share inputs, texts, waits and locks. */
export const kindOf = (channel: Channel) => (channel === 'email' ? channel : 'sms')

/** The channel after this one, in the order of the page. Undefined if the page offers no other. */
export function channelAfter(channel: Channel, offered: readonly Channel[]): Channel | undefined {
  const next = offered[(offered.indexOf(channel) + 1) % offered.length]
  return next === channel ? undefined : next
}
