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

/** Facts of a request that only limits need. */
export interface Origin {
  /** The address of the person: the caller's address, or the address that a server names. */
  ip: string
  /** ISO 3166 code of a phone number; empty for mail and for numbers without a country. */
  country: string
  keyId: string
  /** The key may stand in a page. */
  isPage: boolean
}

/** `ip`: the person's address as named by a server. */
export function originOf(caller: Caller, ip: string | undefined, country: string): Origin {
  return { ip: ip ?? caller.ip, country, keyId: caller.keyId, isPage: caller.isPage }
}
