/**
 * Settles attempts of unknown outcome: the answer was lost, or the worker died. Before such a message is sent again, this
 * checks whether its code passed, reads early receipts and then queries the provider.
 *
 * Only the provider of the call can report that it does not have the message. After a deployment, its name may belong to
 * a provider of another kind, which knows nothing about the call. A worker of an earlier version stored no provider when it
 * died. Then any provider may report that it has the message, but none that it has not.
 */
import { Unavailable } from '../base/unavailable.ts'
import type { OpenNotice } from '../notice/claim.ts'
import type { SentMessage } from '../providers/provider.ts'
import type { AttemptLog } from './attempt-log.ts'
import type { GuardedProvider } from './guarded-provider.ts'
import { type ClaimOutcome, sentBy } from './record-outcome.ts'

export type ResolveUnknown = ReturnType<typeof createResolveUnknown>

/** Finds an early receipt of this notice, from any provider: that provider has the message. */
export type FindReceipt = (
  noticeId: string,
) => Promise<{ provider: string; messageId?: string | null | undefined } | undefined>

export function createResolveUnknown(deps: { findReceipt: FindReceipt }) {
  /** The outcome of a notice that a provider has accepted; undefined if no provider reports it. */
  return async function resolveUnknown(
    notice: OpenNotice,
    providers: readonly GuardedProvider[],
    attemptLog: AttemptLog,
  ): Promise<ClaimOutcome | undefined> {
    const open = attemptLog.unknowns()
    const latest = open.at(-1)
    if (!latest) return undefined
    // The code passed, so the person has the message.
    if (notice.hasPassed) return { state: 'sent', provider: latest.provider ?? undefined }

    const receipt = await findReceipt(notice.id)
    if (receipt) {
      attemptLog.addAnswer(receipt.provider, 'accepted')
      return sentBy(receipt.provider, receipt.messageId)
    }
    for (const { provider, kind, at } of open) {
      const asked = providers.filter(
        (one) => provider === null || (one.name === provider && one.kind === (kind ?? one.kind)),
      )
      const sentMessage = { noticeId: notice.id, to: notice.recipient, sentAt: Date.parse(at) }
      const answer = await askAll(asked, sentMessage)
      if (answer === 'not_taken' && provider !== null) attemptLog.addAnswer(provider, 'not_taken')
      if (typeof answer === 'object') {
        attemptLog.addAnswer(answer.provider as string, 'accepted')
        return answer
      }
    }
    return undefined
  }

  async function findReceipt(noticeId: string) {
    try {
      return await deps.findReceipt(noticeId)
    } catch (error) {
      if (error instanceof Unavailable) return undefined
      throw error
    }
  }

  /** `not_taken` only if every provider reports it. */
  async function askAll(
    providers: readonly GuardedProvider[],
    sent: SentMessage,
  ): Promise<ClaimOutcome | 'not_taken' | 'unknown'> {
    let word: 'not_taken' | 'unknown' = providers.length > 0 ? 'not_taken' : 'unknown'
    for (const provider of providers) {
      if (!provider.query) {
        word = 'unknown'
        continue
      }
      const result = await provider.query(sent)
      if (result.kind === 'accepted') return sentBy(provider.name, result.messageId)
      if (result.kind !== 'unavailable') word = 'unknown'
    }
    return word
  }
}
