/** The facts of a country: the content of a file of data/. schema.ts checks the files; CONTRIBUTING explains how one is written. */
export type SenderKind = 'alphanumeric' | 'long' | 'short' | 'tollFree'

/** The end of a message that breaks a rule: it arrives under another sender, never, or not with every carrier. */
export type Consequence = 'replaced' | 'refused' | 'risky'

export interface SenderFact {
  readonly about: 'sender'
  readonly kind: SenderKind
  readonly is: 'works' | 'registered' | Consequence
  /** The consequence without the registration. */
  readonly unregistered?: 'works' | Consequence | undefined
  /** The sender that people see in place of a replaced one. */
  readonly shownAs?: string | undefined
}

/** The form of a name as the sender. */
export interface SenderFormFact {
  readonly about: 'senderForm'
  /** Without it, refused. A name of more than 11 characters always is: no SMS has room for it. */
  readonly is?: 'refused' | 'risky' | undefined
  readonly minLength?: number | undefined
  readonly maxLength?: number | undefined
  readonly characters?: 'ascii' | 'gsm' | 'letters' | 'lettersAndDigits' | undefined
  readonly pattern?: string | undefined
  readonly needsLetter?: boolean | undefined
}

export interface SenderWordsFact {
  readonly about: 'senderWords'
  readonly is: Consequence
  readonly words: readonly string[]
  /** False: a sender that contains such a word is meant too. */
  readonly exact?: boolean | undefined
}

export type TextPart =
  | 'link'
  | 'shortLink'
  | 'phoneNumber'
  | 'emailAddress'
  | 'webOtp'
  | 'emoji'
  | 'nonGsm'
  | 'word'

export interface TextFact {
  readonly about: 'text'
  readonly has: TextPart
  readonly words?: readonly string[] | undefined
  readonly is: 'registered' | 'refused' | 'risky'
  /** The consequence without the registration; without it, refused. */
  readonly unregistered?: 'refused' | 'risky' | undefined
}

export interface TextFormFact {
  readonly about: 'textForm'
  readonly needs: 'sign' | 'brand'
  readonly is: 'refused' | 'risky'
}

export interface TemplateFact {
  readonly about: 'template'
  readonly is: 'works' | 'registered'
  readonly unregistered?: 'works' | 'refused' | 'risky' | undefined
  /** How a registered text writes a variable. */
  readonly variables?: string | undefined
  /** The types of variables, where each must name one. */
  readonly tags?: readonly string[] | undefined
}

export interface RegisterFact {
  readonly about: 'register'
  readonly of: 'sender' | 'template' | 'brand' | 'business'
  /** The only kind of sender that is filed there. */
  readonly kind?: SenderKind | undefined
  readonly name: string
  readonly url: string
  /** Such as 5d or 2w. */
  readonly takes?: string | undefined
  readonly costs?: string | undefined
  /** Only a business of that country can file. */
  readonly local?: boolean | undefined
}

interface PriceFact {
  readonly about: 'price'
  readonly class: 'low' | 'middle' | 'high'
}

interface NoteFact {
  readonly about: 'note'
  readonly text: string
}

/** A fact, the address of its source, and the day of the last look into it. */
export type Fact = { readonly source: string; readonly read: string } & (
  | SenderFact
  | SenderFormFact
  | SenderWordsFact
  | TextFact
  | TextFormFact
  | TemplateFact
  | RegisterFact
  | PriceFact
  | NoteFact
)

export interface CountryRules {
  readonly country: string
  readonly name: string
  readonly facts: readonly Fact[]
}
