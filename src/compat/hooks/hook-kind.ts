/** An identity product that makes its own codes, and calls a hook that sends them. */

import type { ReceiptHead, ReceiptRequest } from '../../base/receipt.ts'
import type { FieldWord } from '../../base/words.ts'

export interface HookKind {
  /** The mistake in a secret of the policy file; undefined for a usable one. */
  findMistake(secret: string): string | undefined
  /** The secrets in the setting, if it can have several. */
  secretsIn?(secret: string): readonly string[]
  create(secret: string): HookReader
}

export type HookHead = Omit<ReceiptHead, 'query'>
export type HookRequest = Omit<ReceiptRequest, 'query'>

export interface HookReader {
  /** Called before the body is read. False if no body can make the request genuine. */
  mayBeGenuine(head: HookHead): boolean
  isGenuine(request: HookRequest): boolean
  /** `body`: the JSON of a genuine request. Undefined if it is not a message of this product. */
  read(body: unknown, request: HookRequest): HookMessage | undefined
  /** The product expects a refusal as `{ error }` in an answer with status 200. */
  readonly refusesIn200?: true
}

export interface HookMessage {
  /** The id is the same in each repeat of the call. Without an id, every call sends. */
  id?: string | undefined
  /** Empty for a message without a code, such as a warning after a new password. */
  codes: readonly CodeToSend[]
  /** The reason why no code can be sent: the message has no clear recipient. */
  refusal?: FieldWord | undefined
}

export interface CodeToSend {
  channel: 'sms' | 'email'
  /** The recipient as the product writes it. */
  to: string
  code: string
  locale?: string | undefined
  /** The address of the person, as the product writes it. */
  ip?: string | undefined
}

/** Products show the secret once and make it long. A short one is a mistake in the file. */
export const findShortness = (secret: string): string | undefined =>
  secret.length < 8 ? 'has less than 8 characters' : undefined
