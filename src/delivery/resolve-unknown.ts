/**
 * Settles tries of unknown outcome: an answer was lost, or the worker was. Before such a message is
 * sent again, all that may know are asked: receipts that came early, then the provider itself. A try
 * whose provider died with its worker is asked of every provider that could have had it.
 */
import { Unavailable } from '../base/problems.ts'
import type { OpenNotice } from '../notice/claim.ts'
import type { SentMessage } from '../providers/provider.ts'
import type { AttemptLog } from './attempt-log.ts'
import type { GuardedProvider } from './guarded-provider.ts'
import { type ClaimOutcome, sentBy } from './outcome.ts'

export type ResolveUnknown = ReturnType<typeof createResolveUnknown>

export function createResolveUnknown(deps: {
  /** A receipt that came early, of any provider: this one has it. */
  findReceipt: (
    noticeId: string,
  ) => Promise<{ provider: string; messageId?: string | undefined } | undefined>
  /** One question at most. */
  timeoutMs: number
}) {
  /** The ending of a notice that a provider turns out to have; undefined when none says so. */
  return async function resolveUnknown(
    notice: OpenNotice,
    providers: readonly GuardedProvider[],
    attemptLog: AttemptLog,
  ): Promise<ClaimOutcome | undefined> {
    const open = attemptLog.unknowns()
    if (open.length === 0) return undefined

    const receipt = await findReceipt(notice.id)
    if (receipt) {
      attemptLog.addAnswer(receipt.provider, 'accepted')
      return sentBy(receipt.provider, receipt.messageId)
    }
    for (const { provider, at } of open) {
      const asked = providers.filter(({ name }) => provider === null || name === provider)
      const sentMessage = { noticeId: notice.id, to: notice.recipient, sentAt: Date.parse(at) }
      const answer = await askAll(asked, sentMessage)
      if (answer === 'not_taken') attemptLog.addAnswer(provider, 'not_taken')
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

  /** `not_taken` only when every one of them says so. */
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
      const result = await provider.query(sent, deps.timeoutMs)
      if (result.kind === 'accepted') return sentBy(provider.name, result.messageId)
      if (result.kind !== 'unavailable') word = 'unknown'
    }
    return word
  }
}
