import type { UnsentReason } from '../base/metrics.ts'
import type { NoticeOutcome } from '../notice/record.ts'

/** What became of a claim, without the bookkeeping. */
export type ClaimOutcome = Pick<NoticeOutcome, 'provider' | 'providerMessageId'> &
  (
    | { state: 'pending'; retryInMs: number; error?: never }
    | { state: 'sent'; error?: never }
    | { state: 'failed' | 'expired'; error: UnsentReason }
  )

/** Its time ended, or its code did, before a provider took it. */
export const expired = (error: UnsentReason): ClaimOutcome => ({ state: 'expired', error })

/** It may have reached the person, which could not be found out, and the policy allows no further doubling. */
export const outcomeUnknown: ClaimOutcome = { state: 'failed', error: 'outcome_unknown' }

export function sentBy(provider: string, messageId: string | undefined): ClaimOutcome {
  return { state: 'sent', provider, ...(messageId ? { providerMessageId: messageId } : {}) }
}
