/** The code that a check is about, and the addresses for which a guess of it counts. */
import type { Channel } from '../base/channel.ts'
import type { CodeId } from '../base/ids.ts'
import { addressKindOf } from '../recipient/channels.ts'
import { type NormaliseRecipient, refusedRecipient } from '../recipient/normalise-recipient.ts'
import type { Caller, Origin } from '../rules/caller.ts'
import type { Refused } from '../rules/refused.ts'
import type { FindCaptcha } from './cancel.ts'
import type { LiveCode } from './code-answers.ts'
import { addressesOf, isShared } from './code-names.ts'
import type { CodeOwner, CodeStore } from './code-store.ts'

/** How a check names a code. */
export type CodeNamed =
  /** `to`: in any spelling. With an id, only the code of this notice passes. */
  | { channel: Channel; to: string; scene: string; id?: string | undefined }
  /** The id of a verification, or for servers also of one notice. A scene excludes ids of other scenes. */
  | { id: string; scene?: string | undefined }

export interface FoundCode extends CodeOwner {
  country: string
  id: CodeId | undefined
  /** The owner under which the code lies. For a verification that its id names, channel and recipient are not compared. */
  place: CodeOwner
}

export interface FindCodeDeps {
  normaliseRecipient: NormaliseRecipient
  codes: Pick<CodeStore, 'findHome'>
  findCaptcha: FindCaptcha
}

/**
 * Finds the owner of the code that a check names. Redis knows verifications, so their checks work while PostgreSQL is away. An
 * unknown id costs no try.
 */
export function createFindCode({ normaliseRecipient, codes, findCaptcha }: FindCodeDeps) {
  return async function findCode(
    asked: CodeNamed,
    { app, isPage }: Caller,
  ): Promise<FoundCode | Refused> {
    const isNamed = 'to' in asked
    const home = isNamed ? undefined : await codes.findHome(app, asked.id)
    const owner = isNamed ? asked : (home ?? (isPage ? null : await findCaptcha(app, asked.id)))
    if (!owner || (asked.scene ?? owner.scene) !== owner.scene) {
      return { outcome: 'code_gone', reason: 'unknown' }
    }
    const { channel, scene } = owner
    const recipient = normaliseRecipient(channel, owner.to)
    if (recipient.kind !== 'ok') return refusedRecipient(recipient)
    const { to, country } = recipient
    const named = { app, channel, to, scene }
    return { ...named, country, id: asked.id, place: home ?? named }
  }
}

interface Target {
  owner: CodeOwner
  id: CodeId | undefined
  /** The addresses to which its notices were sent. `origin`: with the country of the address. */
  guessed: readonly { owner: CodeOwner; origin: Origin }[]
}

/** The code that a guess is compared with. Undefined if Redis lost the code, or this channel has not sent it. */
export async function targetOf(
  codes: Pick<CodeStore, 'findHome'>,
  guess: FoundCode & { origin: Origin },
  { shared }: LiveCode,
): Promise<Target | undefined> {
  const { app, channel, to, place, id, origin } = guess
  if (!shared) return { owner: guess, id, guessed: [{ owner: guess, origin }] }
  if (!isShared(place) && !shared.channels.includes(channel)) return undefined
  const home = isShared(place) ? place : await codes.findHome(app, shared.codeId)
  if (!home) return undefined
  const guessed = shared.channels.map((each) => {
    const sentTo = { app, scene: home.scene, channel: each, to: home.addresses[each] ?? '' }
    const { country } = each === channel ? origin : addressKindOf(each).placeOf(sentTo.to)
    return { owner: sentTo, origin: { ...origin, country } }
  })
  // Without the id, only the digits of this address are right.
  const owner = home === place ? home : { ...home, addresses: { [channel]: to } }
  return { owner, id: shared.codeId, guessed }
}

/** The addresses to which the code may have been sent. */
export const ownersOf = ({ app, scene, place }: FoundCode): readonly CodeOwner[] =>
  addressesOf(place).map((address) => ({ app, scene, ...address }))

/** The owner whose code was typed. `channel`: of the right code, if it is for several notices. */
export function typedOf(guess: FoundCode, { channel = guess.channel }: { channel?: Channel }) {
  const { app, scene, place } = guess
  const to = addressesOf(place).find((address) => address.channel === channel)?.to ?? guess.to
  return { app, scene, channel, to }
}
