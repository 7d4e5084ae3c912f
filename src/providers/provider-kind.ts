import type { ZodType } from 'zod'
import type { Channel } from '../base/channel.ts'
import type { Receipt, ReceiptReader } from '../base/receipt.ts'
import type { Provider } from './provider.ts'
import type { SandboxOutbox } from './sandbox/outbox.ts'

/**
 * What a provider can be made of. Every folder of this room exports exactly one of these: the
 * policy-file check reads `settings`, the composition root calls `create` once per entry, and the
 * receipt route calls `createReceiptReader` where the far end POSTs any.
 */
export interface ProviderKind<Settings = unknown> {
  /** The `kind:` of the policy file. */
  readonly kind: string
  readonly channels: readonly Channel[]
  /** The policy-file entry without `kind`, environment already filled in; unknown keys are refused. */
  readonly settings: ZodType<Settings>
  /** Builds a provider and opens nothing: the first send connects. */
  create(name: string, settings: Settings, deps: ProviderDeps): Provider
  /**
   * Asks the far end whether it takes our credentials, where that can be done without sending. Undefined: it does;
   * else why not. Ends within `timeoutMs` and throws nothing.
   */
  probe?(settings: Settings, timeoutMs: number): Promise<string | undefined>
  /** Reads what the far end POSTs about earlier messages, where it does. */
  createReceiptReader?(settings: Settings): ReceiptReader
}

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
