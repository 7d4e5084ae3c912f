import { z } from 'zod'
import { optOut } from './opt-out.ts'
import { suppressionReasons } from './suppression.ts'

export const receiptOutcomes = ['delivered', 'failed', ...suppressionReasons] as const

/**
 * A receipt is a provider's later report on a message it had accepted. A provider kind reads it, the API accepts it,
 * and `src/notice/receipts.ts` moves the notice. All three share these types.
 */
export type Receipt = z.infer<typeof receipt>

const receipt = z.object({
  /** The provider's message id, as `accepted` gave it. At least one of the two ids is present. */
  messageId: z.string().optional(),
  /** The message id in the other form that this provider may use for it. */
  otherMessageId: z.string().optional(),
  /** Digits of numbers, one of which must be the recipient's: for providers that use a message id twice. */
  recipients: z
    .array(z.string().regex(/^\d{6,20}$/))
    .readonly()
    .optional(),
  /** Postern's notice id, if the provider returns it. */
  noticeId: z.string().optional(),
  /**
   * `bounced`: there is no such recipient. `complained`: the person reported the message as spam. `opted_out`: the person
   * wants no messages of this provider.
   */
  outcome: z.enum(receiptOutcomes),
  /** The provider gave back the price of the message. */
  isRefunded: z.literal(true).optional(),
  /** Milliseconds since 1970, by the provider's clock. */
  at: z.number().optional(),
  /** The provider's reason code; never a recipient or a text. */
  detail: z.string().optional(),
})

/** Stands for a receipt that cannot be read. Without an id, it is counted as malformed. */
export const unreadable: Receipt = { outcome: 'failed' }

/**
 * Reads the POST requests of one provider about earlier messages. Any stranger can call that address, so a reader limits
 * the cost of a call before the sender is known. Pure, and never throws for bad input.
 */
export interface ReceiptReader {
  /** True if the provider may send a receipt as the query of a GET, which has no body. */
  readonly readsQuery?: boolean
  /** Longer bodies are refused. A limit above 48 kB needs proof of the sender in the head (I21). */
  readonly maxBodyBytes: number
  /** Called before a byte of the body is read. False: a sure forgery. */
  mayBeGenuine(head: ReceiptHead): boolean
  /**
   * Reads what `parse` needs to check the signature of this request, such as a certificate. False: it cannot be read now,
   * and the vendor must send the request again. Never rejects.
   */
  fetchProof?(request: ReceiptRequest): Promise<boolean>
  /** After `parse`: a vendor that asks for a consent gets it. False: it did not get it, and must ask again. Never rejects. */
  confirm?(request: ReceiptRequest): Promise<boolean>
  /** Checks the signature first, in work that grows no faster than the body. */
  parse(request: ReceiptRequest): ParsedReceipts
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

export type ParsedReceipts = z.infer<typeof parsedReceipts>

/** Checked, because a reply that can't be written would leave the provider without an answer. */
export const parsedReceipts = z.discriminatedUnion('ok', [
  z.object({ ok: z.literal(false), reason: z.enum(['forged', 'malformed']) }),
  z.object({
    ok: z.literal(true),
    /** Empty if the reported state is not final. */
    receipts: z.array(receipt).readonly(),
    /** Words of persons, at an address that gets incoming messages too. */
    optOuts: z.array(optOut).readonly().optional(),
    /** The answer after which this provider does not send the same receipts again. */
    reply: z.object({
      status: z.int().min(200).max(599),
      contentType: z.string().regex(/^[\x20-\x7e]+$/),
      body: z.string(),
    }),
  }),
])
