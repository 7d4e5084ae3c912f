/** A kind of address. Code that depends on the form of an address asks its kind. */
import type { NumberType } from '../base/number-types.ts'

export interface RecipientRules {
  /** For numbers written without a country code. */
  defaultCountry?: string | undefined
  /** Countries that may get messages; all if absent. */
  countries?: readonly string[] | undefined
  /** Number types that get messages; a list per channel if absent. */
  types?: readonly NumberType[] | undefined
  /** Beginnings of numbers that count as mobile numbers although the numbering plans do not know them yet. */
  allow?: readonly string[] | undefined
  /** `refuse`: domains that get no mail, with all their subdomains, in lower-case ASCII. */
  mail?: { readonly refuse: readonly string[] } | undefined
}

/**
 * `no_country`: the country of the number is unknown. `type`: a landline, for example. `is_address`, `is_number`: it is of
 * another kind.
 */
export type InvalidBecause =
  | 'no_country'
  | 'type'
  | 'no_number'
  | 'no_address'
  | 'is_address'
  | 'is_number'

/** The settings that can forbid a recipient. */
export const notAllowedBecause = ['country', 'type', 'mail_domain', 'recipient'] as const
export type NotAllowedBecause = (typeof notAllowedBecause)[number]

/** No message can go there. */
export interface Invalid {
  readonly kind: 'invalid'
  readonly because: InvalidBecause
}

/** An address in its normal form. `problem`: why it gets no message. */
export interface ReadAddress {
  readonly to: string
  /** ISO 3166; empty if the address has no country. */
  readonly country: string
  readonly problem?: Invalid | { readonly kind: 'not_allowed'; readonly because: NotAllowedBecause }
}

export interface Place {
  /** ISO 3166; empty if the address has no country. */
  readonly country: string
  /** The digits of a number without the calling code of its country. */
  readonly nationalNumber?: string
}

export interface AddressKind {
  /** Why another kind refuses a text that is written in this one. */
  readonly insteadOf: InvalidBecause
  /** True for a text in the form of this kind. The address need not exist. */
  isWritten(text: string): boolean
  /**
   * Returns a reader of every spelling. It gives a reason for a text that is no address of this kind. `typesByDefault`: the
   * number types that get messages if the rules list none.
   */
  createReader(
    rules: RecipientRules,
    typesByDefault?: readonly NumberType[],
  ): (text: string) => ReadAddress | InvalidBecause
  /** The masked form in answers: the owner recognises it, and others can't read it. */
  mask(to: string): string
  /** The same as an expression of SQL. */
  maskSql(column: string): string
  /** False if the addresses of this kind belong to no country. */
  readonly hasCountries: boolean
  /** The country of an address, and its digits there. */
  placeOf(to: string): Place
  /** The part that an attacker's addresses have in common: a number without its last four digits, the domain of a mail. */
  prefixOf(to: string): string
  /** The recipient as its provider knows it. Addresses of one mailbox are one recipient. */
  mailboxOf(to: string): string
  /** The addresses that one owner can get at once: a block of phone numbers. For mail only a mailbox: domains are shared. */
  blockOf(to: string): string
  /** The domain whose mail servers can be looked up. */
  domainOf?(to: string): string
  /** True if a text contains an address in any spelling. `spellings`: the normal form and other known forms. */
  isNamedIn(text: string, spellings: readonly string[]): boolean
  /** A condition of SQL: the text contains the address. It may also be true for other texts. */
  isNamedInSql(text: string, column: string): string
}
