/** The code that a guess is compared with, and the addresses for which it counts. */
import type { Channel } from '../base/channel.ts'
import type { CodeId } from '../base/ids.ts'
import { addressKindOf } from '../recipient/channels.ts'
import type { Origin } from '../rules/caller.ts'
import type { LiveCode } from './code-answers.ts'
import type { CodeOwner, CodeStore, SharedOwner } from './code-store.ts'

interface Target {
  owner: CodeOwner
  id: CodeId | undefined
  /** The addresses to which its notices were sent. `origin`: with the country of the address. */
  guessed: readonly { owner: CodeOwner; origin: Origin }[]
}

/**
 * The code that a guess is compared with. Undefined if Redis lost the code.
 * `home`: the owner of the code for several notices whose id was given.
 */
export async function targetOf(
  codes: Pick<CodeStore, 'findHome'>,
  guess: CodeOwner & { id: CodeId | undefined; home: SharedOwner | undefined; origin: Origin },
  { shared }: LiveCode,
): Promise<Target | undefined> {
  const { app, channel, to, home: given, id, origin } = guess
  if (!shared) return { owner: guess, id, guessed: [{ owner: guess, origin }] }
  const home = given ?? (await codes.findHome(app, shared.codeId))
  if (!home) return undefined
  const guessed = shared.channels.map((each) => {
    const sentTo = { app, scene: home.scene, channel: each, to: home.addresses[each] ?? '' }
    const { country } = each === channel ? origin : addressKindOf(each).placeOf(sentTo.to)
    return { owner: sentTo, origin: { ...origin, country } }
  })
  // Without the id, only the digits of this address are right.
  const owner = given ?? { ...home, addresses: { [channel]: to } }
  return { owner, id: shared.codeId, guessed }
}

/** The owner whose code was typed. */
export const typedOf = (
  guess: CodeOwner & { home: SharedOwner | undefined },
  { channel }: { channel?: Channel },
): CodeOwner => ({
  ...{ app: guess.app, scene: guess.scene, channel: channel ?? guess.channel },
  to: (channel && guess.home?.addresses[channel]) ?? guess.to,
})
