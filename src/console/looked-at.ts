/**
 * The recipient of a story, sealed in the address of the page. Browser histories and proxies keep addresses, so an
 * address never holds a plain recipient. Every process with the same `SECRET` can open it, and operators can share it.
 *
 * An operator who opens a story can see the recipient in full. So the sealed text names the apps of the operator who
 * typed the recipient, or the app of the notice. It opens only for operators of these apps.
 *
 * A revealed recipient is sealed in the same way, for one operator and for a few minutes.
 */
import { z } from 'zod'
import { type Channel, channels } from '../base/channel.ts'
import { parseJson } from '../base/json.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { Browse } from '../notice/browse.ts'
import { addressKindOf, channelsOfKind, isChannel } from '../recipient/channels.ts'
import type { Operator } from './page.ts'

const lookedAt = z.object({
  channel: z.enum(channels),
  to: z.string(),
  /** The IP address of the person, if support knows it. */
  ip: z.string().optional(),
  /** Operators of these apps may open the text. Without it, only operators of every app may. */
  apps: z.array(z.string()).readonly().optional(),
  revealed: z.object({ keyId: z.string(), untilMs: z.number() }).optional(),
})

export type LookedAt = z.infer<typeof lookedAt>
export type Sealing = ReturnType<typeof createSealing>

export const revealedForMs = 5 * 60_000

export function createSealing(secrets: Pick<Secrets, 'sealText' | 'unsealText'>) {
  const context = 'console recipient'
  return {
    seal: (one: LookedAt): string => secrets.sealText(JSON.stringify(one), context),

    /** Undefined if the text is forged, if its secret was removed, or if it is for other operators. */
    open(sealed: string, { apps }: Pick<Operator, 'apps'>): LookedAt | undefined {
      const one = lookedAt.safeParse(parseJson(secrets.unsealText(sealed, context) ?? '')).data
      const isTheirs = apps === undefined || one?.apps?.some((app) => apps.includes(app))
      return isTheirs ? one : undefined
    },
  }
}

export type WaysOf = ReturnType<typeof createWaysOf>

/** The channels by which messages went to one address. A number can have several. */
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
