import type { ZodType } from 'zod'
import type { Channel, Provider } from './provider.ts'
import type { SandboxOutbox } from './sandbox/outbox.ts'

/**
 * What a provider can be made of. Every folder of this room exports exactly one of these: the
 * policy-file check reads `settings`, the composition root calls `create` once per entry, and the
 * receipt route calls `receipts` where the far end POSTs any.
 */
export interface ProviderKind<Settings = unknown> {
  /** The `kind:` of the policy file. */
  readonly kind: string
  readonly channels: readonly Channel[]
  /** The policy-file entry without `kind`, environment already filled in; unknown keys are refused. */
  readonly settings: ZodType<Settings>
  /** Builds a provider and opens nothing: the first send connects. */
  create(name: string, settings: Settings, deps: ProviderDeps): Provider
  /** Reads what the far end POSTs about earlier messages, where it does. */
  readonly receipts?: ReceiptReader<Settings>
}

/**
 * Anybody may call the address for receipts, so a kind says what a call may cost before it is known
 * who made it. Pure, and never throws for bad input.
 */
export interface ReceiptReader<Settings> {
  /** Longer bodies are refused. More than `maxUnprovenBytes` only where the head proves the sender. */
  readonly maxBodyBytes: number
  /** Looks at a call before a byte of its body is read: false for a sure forgery. */
  mayBeGenuine(head: ReceiptHead, settings: Settings): boolean
  /** The signature is checked before all else, in work that grows no faster than the body. */
  parse(request: ReceiptRequest, settings: Settings): ParsedReceipts
}

/** What a stranger can make us hold (I21). */
export const maxUnprovenBytes = 49_152

/** What a provider may use of the process it lives in. */
export interface ProviderDeps {
  /** How long one attempt may take, connecting included; the signal of `send` may end it earlier. */
  readonly timeoutMs: number
  /** Calls at once, for kinds that have no such number of their own. */
  readonly concurrency: number
  /** Milliseconds since 1970. */
  readonly clock: () => number
  /** Where the sandbox keeps its messages: one for all sandbox providers of the process. */
  readonly outbox?: SandboxOutbox
  /**
   * Takes receipts that come over a provider's own connection (`smpp`, `sandbox`). Rejecting asks the
   * far end to send it again, where its protocol has a word for that.
   */
  readonly onReceipt?: (provider: string, receipt: Receipt) => Promise<void>
}

/** The far end's later word on a message it had accepted. At least one of the two ids is there. */
export interface Receipt {
  /** The far end's id, as `accepted` gave it. */
  readonly messageId?: string
  /** Our reference, where the far end hands it back. */
  readonly noticeId?: string
  readonly outcome: 'delivered' | 'failed'
  /** Milliseconds since 1970, by the far end's clock. */
  readonly at?: number
  /** The far end's reason code; never a recipient or a text. */
  readonly detail?: string
}

export interface ReceiptHead {
  /** Names in lower case, as Node gives them. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly query: Readonly<Record<string, unknown>>
  /** Milliseconds since 1970. */
  readonly receivedAt: number
}

export interface ReceiptRequest extends ReceiptHead {
  readonly rawBody: Buffer
}

export type ParsedReceipts =
  | {
      readonly ok: true
      /** Empty when the far end tells of a state that is not final. */
      readonly receipts: readonly Receipt[]
      /** The answer that keeps this far end from sending them again. */
      readonly reply: ReceiptReply
    }
  | { readonly ok: false; readonly reason: 'forged' | 'malformed' }

export interface ReceiptReply {
  readonly status: number
  readonly contentType: string
  readonly body: string
}
