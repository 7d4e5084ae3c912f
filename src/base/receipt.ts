/**
 * A receipt is the far end's later word on a message it had accepted. A provider's kind reads it, the
 * API takes it, and `src/delivery/receipts.ts` moves the notice by it: the three agree on these types.
 */
export interface Receipt {
  /** The far end's id, as `accepted` gave it. At least one of the two ids is there. */
  readonly messageId?: string
  /** Our reference, where the far end hands it back. */
  readonly noticeId?: string
  readonly outcome: 'delivered' | 'failed'
  /** Milliseconds since 1970, by the far end's clock. */
  readonly at?: number
  /** The far end's reason code; never a recipient or a text. */
  readonly detail?: string
}

/**
 * Reads what one provider POSTs about earlier messages. The address for receipts is open to all, so a
 * reader says what a call may cost before it is known who made it. Pure, and never throws for bad input.
 */
export interface ReceiptReader {
  /** Longer bodies are refused. More than 48 kB only where the head proves the sender (I21). */
  readonly maxBodyBytes: number
  /** Looks at a call before a byte of its body is read: false for a sure forgery. */
  mayBeGenuine(head: ReceiptHead): boolean
  /** The signature is checked before all else, in work that grows no faster than the body. */
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
