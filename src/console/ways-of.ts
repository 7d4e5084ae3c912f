/** The channels by which messages went to one address. A number can have several. */
import type { Channel } from '../base/channel.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { Browse } from '../notice/browse.ts'
import { addressKindOf, channelsOfKind, isChannel } from '../recipient/channels.ts'
import type { Operator } from './page.ts'

export type WaysOf = ReturnType<typeof createWaysOf>

export function createWaysOf(deps: {
  notices: Pick<Browse, 'channelsOf'>
  secrets: Pick<Secrets, 'recipientHashes'>
}) {
  const { notices, secrets } = deps

  /** Latest first. Empty without messages, and for addresses with one channel only. Throws Unavailable. */
  return async function waysOf(
    { apps }: Pick<Operator, 'apps'>,
    { channel, to }: { channel: Channel; to: string },
  ): Promise<Channel[]> {
    const all = channelsOfKind(addressKindOf(channel))
    if (all.length < 2) return []
    const hashes = all.flatMap((each) => secrets.recipientHashes(each, to))
    return (await notices.channelsOf(apps, hashes)).filter(isChannel)
  }
}
