/** What a refusal means for the person at the field. */
import type { Channel, Problem } from './client.ts'
import { ofChannel, type TextName } from './texts.ts'

export interface Refusal {
  name: TextName
  values?: Readonly<Record<string, number>>
  /** What the sentence is about; `address`: another one is needed. */
  about?: 'address' | 'code'
  /** Until then nothing else would be answered. */
  waitMs?: number
  /** No code that could be typed would pass. */
  isGone?: boolean
  /** What the page's author has to mend. */
  isFault?: boolean
}

export function refusalOf(
  problem: Problem,
  asked: { during: 'send' | 'check'; channel: Channel; hasOther: boolean },
): Refusal {
  const { during, channel, hasOther } = asked
  const another = (name: string): Refusal => ({ name: ofChannel(channel, name), about: 'address' })
  switch (problem.code) {
    case 'limited':
    case 'locked': {
      const isLocked = problem.code === 'locked' || during === 'check'
      const name = isLocked ? 'locked' : hasOther ? 'limitedOther' : 'limited'
      return { name, waitMs: problem.retryAfterMs }
    }
    case 'code_mismatch': {
      const { triesLeft: n } = problem
      if (n === 0) return { name: 'wrongLast', about: 'code', isGone: true }
      return { name: n === 1 ? 'wrongOne' : 'wrong', about: 'code', values: { n } }
    }
    case 'code_gone':
      return { name: 'gone', about: 'code', isGone: true }
    case 'invalid_recipient':
      return another('Invalid')
    case 'destination_not_allowed':
      return another('NotAllowed')
    case 'challenge_required':
      return { name: 'challengeFailed' }
    case 'offline':
      return { name: 'offline' }
    case 'invalid_request':
      return problem.errors.some(({ path }) => path === 'to')
        ? another('Invalid')
        : { name: 'setup', isFault: true }
    default:
      return isUnanswered(problem) ? { name: 'unavailable' } : { name: 'setup', isFault: true }
  }
}

/** Whether it may have been done all the same, and may be asked for again as it was. */
export const isUnanswered = ({ code }: Problem) =>
  ['offline', 'unreachable', 'unavailable', 'internal', 'idempotency_in_progress'].includes(code)
