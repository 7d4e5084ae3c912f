import type { Log } from '../base/log.ts'
import type { OpenNotice } from '../notice/claim.ts'
import type { NoticeOutcome } from '../notice/record.ts'
import type { Attempt } from '../notice/states.ts'
import type { SendResult } from '../providers/provider.ts'
import type { DeliveryMetrics } from './metrics.ts'
import { meanings, unknowns } from './retry.ts'

/** The provider of a call. */
export interface Called {
  readonly name: string
  readonly kind: string
}

/** One call of a provider and its result. */
export interface Answered {
  kind: 'answered'
  result: SendResult
  startedAt: Date
  durationMs: number
}

/** Answers after which a provider is not called with the message again. */
const refusals: readonly string[] = ['rejected', 'invalid_recipient']

export type AttemptLog = ReturnType<typeof createAttemptLog>

/** The attempts for one notice. Each attempt is counted, logged and kept for the row. */
export function createAttemptLog(
  notice: Pick<OpenNotice, 'id' | 'attempts' | 'suppressions'>,
  deps: { metrics: DeliveryMetrics; log: Log },
) {
  const { metrics, log } = deps
  const made: Attempt[] = []
  const suppressions = [...(notice.suppressions ?? [])]
  let latest: NoticeOutcome['suppresses']
  const all = () => made.reduce(withAttempt, notice.attempts)

  return {
    /** Attempts of this round. */
    made,
    /** Attempts of all rounds, as the row stores them. */
    all,
    /** Number of calls in all rounds. */
    calls: () => all().reduce((sum, { count = 1 }) => sum + count, 0),
    /** All attempts that may have reached the person. */
    unknowns: () => unknowns(all()),
    /** Whether this provider refused the message for good. */
    isRefusedBy: (name: string) =>
      all().some(({ provider, outcome }) => provider === name && refusals.includes(outcome)),
    /** Whether the recipient wants no messages of this provider. */
    hasOptedOutOf: (name: string) =>
      suppressions.some(({ provider, reason }) => provider === name && reason === 'opted_out'),
    /** The suppression that the latest call has shown. It is returned once. */
    takeSuppression() {
      const taken = latest
      latest = undefined
      return taken
    },
    /** The time before which this provider does not accept the message, if it postponed the message. */
    againAt: (name: string) =>
      all().find(({ provider, outcome }) => provider === name && outcome === 'postponed')?.againAt,

    add({ name: provider, kind }: Called, answered: Answered, againAt?: string) {
      const { result, startedAt, durationMs } = answered
      const detail = 'detail' in result ? result.detail : undefined
      const facts = {
        ...{ provider, outcome: result.kind, detail },
        durationMs: Math.round(durationMs),
      }
      const kindIfUnknown = result.kind === 'unknown' ? { kind } : {}
      made.push({ ...facts, ...kindIfUnknown, at: startedAt.toISOString(), againAt })
      if (result.kind === 'invalid_recipient' && result.suppresses) {
        latest = { reason: result.suppresses, provider }
        suppressions.push(latest)
      }
      metrics.sends.inc({ provider, outcome: result.kind })
      if (result.kind === 'accepted' && result.messageId === undefined) {
        metrics.sendsWithoutId.inc({ provider })
      }
      metrics.sendSeconds.observe({ provider }, durationMs / 1_000)
      // A successful attempt needs no line: the end of the notice is logged.
      if (result.kind !== 'accepted') log.tried({ noticeId: notice.id, ...facts })
    },

    /** Adds a provider's later answer about an attempt with unknown outcome. */
    addAnswer(provider: string | null, outcome: 'accepted' | 'not_taken'): void {
      const facts = { provider, outcome, durationMs: 0, detail: 'reported later' }
      made.push({ ...facts, at: new Date().toISOString() })
      log.tried({ noticeId: notice.id, ...facts, provider: provider ?? '' })
    },
  }
}

/**
 * Adds a call to the list of the row. During a long outage, many calls end with a wait, or are reported as not taken. They
 * share one entry per provider and outcome, so the list stays short; `tries` bounds all other calls. The latest call
 * stands last.
 */
function withAttempt(attempts: Attempt[], next: Attempt): Attempt[] {
  const asked =
    next.outcome === 'not_taken'
      ? unknowns(attempts).findLast(({ provider }) => provider === next.provider)
      : undefined
  if (!asked) return withCall(attempts, next)
  // The answer stands in place of the attempt.
  const others = attempts.filter((one) => one !== asked)
  return withCall(others, { ...next, at: asked.at })
}

function withCall(attempts: Attempt[], next: Attempt): Attempt[] {
  const isShared = meanings[next.outcome].waits || next.outcome === 'not_taken'
  const index = isShared
    ? attempts.findIndex((one) => one.provider === next.provider && one.outcome === next.outcome)
    : -1
  const earlier = attempts[index]
  if (!earlier) return [...attempts, next]
  const folded = { ...next, at: earlier.at, count: (earlier.count ?? 1) + 1, latestAt: next.at }
  return [...attempts.toSpliced(index, 1), folded]
}
