import type { ZodType } from 'zod'
import type { Channel } from '../base/channel.ts'
import type { Receipt, ReceiptReader } from '../base/receipt.ts'
import type { Provider } from './provider.ts'

/**
 * What a provider can be made of. Every folder of this room exports exactly one of these, and so does a plugin: the
 * policy-file check reads `settings`, a worker calls `create` once per entry, an API calls `createReceiptReader`, and the
 * doctor calls `probe`.
 */
export interface ProviderKind<Settings = unknown> {
  /** The `kind:` of the policy file. */
  readonly kind: string
  readonly channels: readonly Channel[]
  /** The policy-file entry without `kind`, `pace` and `quotas`, environment filled in; it refuses unknown keys. */
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
  /**
   * Takes receipts that come over a provider's own connection (`smpp`, `sandbox`). Rejecting asks the
   * far end to send it again, where its protocol can.
   */
  readonly onReceipt?: (provider: string, receipt: Receipt) => Promise<void>
}
