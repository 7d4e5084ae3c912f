/**
 * Counts a guess for each address to which a notice with the code was sent. So a code for several notices gives an attacker
 * no more guesses at any address. All counts are taken, or none.
 */
import type { Channel } from '../base/channel.ts'
import type { CodeId, RequestId } from '../base/ids.ts'
import { addressKindOf } from '../recipient/channels.ts'
import type { Origin } from '../rules/caller.ts'
import type { CountedGuess, GuessLimits } from '../rules/guess-limits.ts'
import type { Refusal } from '../rules/quota.ts'
import type { LiveCode } from './code-answers.ts'
import type { CodeOwner, CodeStore, SharedOwner } from './code-store.ts'

export function createGuessCounts(
  limits: Pick<GuessLimits, 'count' | 'giveBack' | 'forgive' | 'afterMismatch'>,
) {
  const giveBack = (counts: readonly CountedGuess[]) => counts.forEach(limits.giveBack)

  return {
    /** `guess`: the address of the request, whose country is in `origin`. */
    async count(
      guess: CodeOwner,
      owners: readonly CodeOwner[],
      origin: Origin,
      requestId: RequestId,
      isHuman: boolean,
    ): Promise<{ counts: CountedGuess[] } | { refusal: Refusal }> {
      const counts: CountedGuess[] = []
      for (const owner of owners) {
        const isOfRequest = owner.channel === guess.channel
        const { country } = isOfRequest ? origin : addressKindOf(owner.channel).placeOf(owner.to)
        const counting = limits.count(owner, { ...origin, country }, requestId, isHuman)
        const counted = await counting.catch((error) => {
          giveBack(counts)
          throw error
        })
        if ('refusal' in counted) {
          giveBack(counts)
          return counted
        }
        counts.push(counted)
      }
      return { counts }
    },

    giveBack,

    forgive: (counts: readonly CountedGuess[]) => counts.forEach(limits.forgive),

    /** The longest wait, and a lock that began. */
    async afterMismatch(
      counts: readonly CountedGuess[],
    ): Promise<{ waitMs: number; refusal?: Refusal | undefined }> {
      const holds = await Promise.all(counts.map(limits.afterMismatch))
      const waitMs = Math.max(...holds.map((hold) => hold.waitMs))
      return { waitMs, refusal: holds.find(({ refusal }) => refusal)?.refusal }
    },
  }
}

/**
 * The code that a guess is compared with, and the addresses to which its notices were sent. Undefined if Redis lost the code.
 * `home`: the owner of the code for several notices whose id was given.
 */
export async function targetOf(
  codes: Pick<CodeStore, 'findHome'>,
  guess: CodeOwner & { id: CodeId | undefined; home: SharedOwner | undefined },
  { shared }: LiveCode,
): Promise<{ owner: CodeOwner; id: CodeId | undefined; sentTo: readonly CodeOwner[] } | undefined> {
  const { app, channel, to, scene, home: given, id } = guess
  if (!shared) return { owner: guess, id, sentTo: [{ app, channel, to, scene }] }
  const home = given ?? (await codes.findHome(app, shared.codeId))
  if (!home) return undefined
  const sentTo = shared.channels.map((each) => ({
    ...{ app, scene: home.scene, channel: each, to: home.addresses[each] ?? '' },
  }))
  // Without the id, only the digits of this address are right.
  const owner = given ?? { ...home, addresses: { [channel]: to } }
  return { owner, id: shared.codeId, sentTo }
}

/** The owner whose code was typed. */
export const typedOf = (
  guess: CodeOwner & { home: SharedOwner | undefined },
  { channel }: { channel?: Channel },
): CodeOwner => ({
  ...{ app: guess.app, scene: guess.scene, channel: channel ?? guess.channel },
  to: (channel && guess.home?.addresses[channel]) ?? guess.to,
})
