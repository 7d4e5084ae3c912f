/** A verification with its sealed facts, as sends and checks of its ways need it. */
import { type Channel, channels } from '../base/channel.ts'
import type { CodeId } from '../base/ids.ts'
import type { Params } from '../notice/create.ts'
import type { Verification } from '../notice/verifications.ts'
import { addressKindOf } from '../recipient/channels.ts'
import type { Caller, Lane } from '../rules/caller.ts'
import type { SharedOwner } from './code-names.ts'

export interface Way {
  channel: Channel
  to: string
}

/** The facts that are sealed in the row, because they name the person. */
interface Facts {
  /** The number, in its normal form. */
  to: string
  ways: readonly Way[]
  template: string
  params: Params
  locale?: string | undefined
  /** The person's address, as the limits of the first way counted it. */
  ip: string
  /** The policy of the limit check, if the caller named one. */
  policy?: string | undefined
  lane: Lane
}

export type OpenVerification = Omit<Verification, 'sealed' | 'ways'> & Facts

/** A channel to a number, and the channel to an address of mail. They read the addresses of a request. */
export const numberChannel = channels.find((channel) => !leadsToMail(channel)) as Channel
export const mailChannel = channels.find(leadsToMail) as Channel

export function leadsToMail(channel: Channel): boolean {
  return addressKindOf(channel).domainOf !== undefined
}

/** The code lies with the codes of the number, so any send to the number replaces it. */
export function homeOf({ app, scene, ways, to }: OpenVerification): SharedOwner {
  const way = ways.find((each) => each.to === to) ?? (ways[0] as Way)
  const addresses = Object.fromEntries(ways.map((each) => [each.channel, each.to]))
  return { app, scene, ...way, addresses }
}

export const sealFacts = (
  { id, to, ways, template, params, locale, ip, policy, lane }: OpenVerification,
  seal: (text: string, context: CodeId) => Buffer,
): Buffer =>
  seal(JSON.stringify({ to, ways, template, params, locale, ip, policy, lane } satisfies Facts), id)

export function openVerification(
  { sealed, ways: _, ...row }: Verification,
  unseal: (sealed: Uint8Array, context: CodeId) => string,
): OpenVerification {
  return { ...row, ...(JSON.parse(unseal(sealed, row.id)) as Facts) }
}

/** The caller of the request that began the verification. A worker begins later ways in its name. */
export const callerOf = ({ app, keyId, ip, isPage }: OpenVerification): Caller => ({
  ...{ app, keyId, ip, isPage },
  origins: [],
})
