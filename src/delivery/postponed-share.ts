/**
 * Finds a fault of a provider in its answers about single recipients.
 *
 * `postponed` is about one recipient, so it opens no breaker. But a mail server whose content scanner fails postpones each
 * mail with such an answer. So the latest answers for different recipients are compared. If nearly all are `postponed`, the
 * provider is at fault. Calls go on even then: a burst of bad recipients must not stop the good ones (I30).
 */
import type { SendResult } from '../providers/provider.ts'

const maxRecipients = 20
const leastPostponed = 18
const answerTtlMs = 600_000

/** `onChange` is called when the provider begins or ends to postpone nearly all recipients. */
export function createPostponedShare(onChange: (isNearlyAll: boolean) => void) {
  /** The latest answer for each recipient, the oldest first. */
  const answers = new Map<string, { isPostponed: boolean; atMs: number }>()
  let isNearlyAll = false
  let timer: NodeJS.Timeout | undefined

  function compare(): void {
    const nowMs = performance.now()
    for (const [to, { atMs }] of answers) if (atMs + answerTtlMs <= nowMs) answers.delete(to)
    const all = [...answers.values()]
    const postponed = all.filter(({ isPostponed }) => isPostponed).length
    const before = isNearlyAll
    isNearlyAll = all.length === maxRecipients && postponed >= leastPostponed
    if (isNearlyAll !== before) onChange(isNearlyAll)
    clearTimeout(timer)
    // Without further answers, it ends with the first answer that is too old.
    const [oldest] = all
    if (isNearlyAll && oldest) {
      timer = setTimeout(compare, Math.ceil(oldest.atMs + answerTtlMs - nowMs)).unref()
    }
  }

  return {
    isNearlyAll: () => isNearlyAll,

    /** Other answers than these two do not show whether a message could be accepted. */
    add(to: string, { kind }: SendResult): void {
      if (kind !== 'accepted' && kind !== 'postponed') return
      answers.delete(to)
      answers.set(to, { isPostponed: kind === 'postponed', atMs: performance.now() })
      const [oldest] = answers.keys()
      if (answers.size > maxRecipients && oldest !== undefined) answers.delete(oldest)
      compare()
    },

    stop(): void {
      clearTimeout(timer)
    },
  }
}
