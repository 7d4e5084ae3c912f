import type { ZodType } from 'zod'
import type { Channel } from '../base/channel.ts'
import type { OptOut } from '../base/opt-out.ts'
import type { Receipt, ReceiptReader } from '../base/receipt.ts'
import type { Provider } from './provider.ts'

/**
 * A provider kind. Every folder of this room exports one, and plugins can add more. The check of the policy file reads
 * `settings`, a worker calls `create` once per entry, an API calls `createReceiptReader`, and the doctor calls `probe`.
 */
export interface ProviderKind<Settings = unknown> {
  /** The `kind:` of the policy file. */
  readonly kind: string
  readonly channels: readonly Channel[]
  /** Schema of the policy-file entry without `kind`, `pace` and `quotas`. Variables are filled in. It refuses unknown keys. */
  readonly settings: ZodType<Settings>
  /** The same schema, for kinds whose settings name files: relative paths begin at this folder. */
  settingsIn?(folder: string): ZodType<Settings>
  /** The channels of an entry, if its settings choose some of the kind's channels. */
  channelsOf?(settings: Settings): readonly Channel[]
  /** Whether an entry serves numbers of a country; `country` is empty if none is known. Absent: it serves all. */
  serves?(settings: Settings, country: string): boolean
  /** Builds a provider without connecting: the first send connects. */
  create(name: string, settings: Settings, deps: ProviderDeps): Provider
  /**
   * Checks the credentials at the provider, if that is possible without sending. Returns undefined if they are accepted,
   * otherwise the reason. Ends within `timeoutMs` and never throws.
   */
  probe?(settings: Settings, timeoutMs: number): Promise<string | undefined>
  /** Reads receipts that the provider POSTs. Absent if it sends none over HTTP. */
  createReceiptReader?(settings: Settings): ReceiptReader
}

/** Parts of the process that a provider may use. */
export interface ProviderDeps {
  /** Time limit until a message is handed over, with the connection. The signal of `send` may end it earlier. */
  readonly timeoutMs: number
  /**
   * Time limit for the answer to a message that was handed over. It is longer: without the answer, the outcome is
   * unknown, and the message could go out twice. Absent: `timeoutMs` covers the answer too.
   */
  readonly answerMs?: number
  /** Number of calls at once, for kinds without a setting for it. */
  readonly concurrency: number
  /** Milliseconds since 1970. */
  readonly clock: () => number
  /**
   * Receives receipts that arrive over the provider's connection (`smpp`, `sandbox`). If it rejects, the provider sends
   * the receipt again, if its protocol supports that.
   */
  readonly onReceipt?: (provider: string, receipt: Receipt) => Promise<void>
  /** Receives opt-outs that arrive over the provider's connection (`smpp`), under the same terms. */
  readonly onOptOut?: (provider: string, optOut: OptOut) => Promise<void>
}
