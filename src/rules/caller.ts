/** The caller of a request, and what the limits know of it. */

/** The caller: the holder of an API key, or the host app in process. */
export interface Caller {
  app: string
  keyId: string
  /** The address of the caller, as trusted proxies report it. */
  ip: string
  /** The key may stand in a page: the rules for pages apply too, and a challenge is possible. */
  isPage: boolean
  /** Origins of the pages that may use the key. */
  origins: readonly string[]
  /** The host app or a plugin. Only such a caller may name templates of plugins. */
  isInProcess?: boolean
  /** The caller may make the codes, even if the policy file does not let keys do that. */
  sendsOwnCodes?: boolean
}

/** `known`: the request has a token of this recipient, from a browser in which a right code was typed. */
export const lanes = ['stranger', 'known'] as const
export type Lane = (typeof lanes)[number]

/** Facts of a request that only limits need. */
export interface Origin {
  /** The address of the person: the caller's address, or the address that a server names. */
  ip: string
  /** ISO 3166 code of a phone number; empty for mail and for numbers without a country. */
  country: string
  keyId: string
  /** The key may stand in a page. */
  isPage: boolean
  /** A stranger's if absent, as of all notices. */
  lane?: Lane
}

/** `ipOfPerson`: as named by a server. */
export function originOf(
  { ip, keyId, isPage }: Caller,
  ipOfPerson: string | undefined,
  country: string,
  lane: Lane = 'stranger',
): Origin {
  return { ip: ipOfPerson ?? ip, country, keyId, isPage, lane }
}
