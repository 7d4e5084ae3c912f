import type { UnsentReason } from '../base/metrics.ts'
import type { NoticeOutcome } from '../notice/record.ts'

/** The outcome of a claim, without the bookkeeping. */
export type ClaimOutcome = Pick<NoticeOutcome, 'provider' | 'providerMessageId'> &
  (
    | { state: 'pending'; retryInMs: number; error?: never }
    | { state: 'sent'; error?: never }
    | { state: 'failed' | 'expired'; error: UnsentReason }
  )

/** The notice or its code ended before a provider accepted it. */
export const expired = (error: UnsentReason): ClaimOutcome => ({ state: 'expired', error })

/** The message may have reached the person, and the policy allows no further repeat. */
export const outcomeUnknown: ClaimOutcome = { state: 'failed', error: 'outcome_unknown' }

export function sentBy(provider: string, messageId: string | undefined): ClaimOutcome {
  return { state: 'sent', provider, ...(messageId ? { providerMessageId: messageId } : {}) }
}
