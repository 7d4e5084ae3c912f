/** The meaning of a refusal for the person at the field. */
import type { Channel } from './channels.ts'
import type { Problem } from './client.ts'
import { type AltchaChallenge, hashOf } from './proof-of-work.ts'
import { clockTime } from './readings.ts'
import { ofKind, type TextName, type Values } from './texts.ts'

/** `next`: the request for the next way of a verification. */
export type During = 'send' | 'next' | 'check'

export interface Refusal {
  name: TextName
  values?: Values
  /** The input with the mistake. `address`: the person must enter another address. */
  about?: 'address' | 'code'
  /** Time for which the service refuses sends. */
  waitMs?: number
  /** Time for which the service compares no code, so that a new code would not help. */
  lockMs?: number
  /** No sent code can pass any more. */
  isGone?: boolean
  /** A mistake that the author of the page must correct. */
  isFault?: boolean
}

export function refusalOf(
  problem: Problem,
  asked: {
    during: During
    channel: Channel
    hasOther: boolean
    /** The number has no country code. */
    isNational: boolean
    origin: string
    language: string
  },
): Refusal {
  const { during, channel, hasOther, isNational, origin, language } = asked
  const another = (name: string): Refusal => ({ name: ofKind(channel, name), about: 'address' })
  const setup: Refusal = { name: 'setup', isFault: true }
  const gone: Refusal = { name: 'gone', about: 'code', isGone: true }
  const invalid = another(isNational ? 'National' : 'Invalid')
  switch (problem.code) {
    case 'limited':
    case 'locked': {
      const { code, retryAfterMs } = problem
      // A limit, such as one by address, is no lock of this recipient: a new code can pass.
      if (during === 'check' && code === 'limited')
        return { name: 'checksLimited', values: { at: clockTime(retryAfterMs, language) } }
      if (during === 'check') return { name: 'locked', lockMs: retryAfterMs }
      return { name: hasOther ? 'limitedOther' : 'limited', waitMs: retryAfterMs }
    }
    case 'code_mismatch': {
      const { triesLeft: n, lockedForMs: lockMs } = problem
      if (lockMs) return { name: 'locked', lockMs, isGone: n === 0 }
      if (n === 0) return { name: 'wrongLast', about: 'code', isGone: true }
      return { name: n === 1 ? 'wrongOne' : 'wrong', about: 'code', values: { n } }
    }
    case 'code_gone':
      return gone
    case 'not_found':
      return during === 'next' ? gone : setup
    // Only of the next way: there is no other address.
    case 'no_more_ways':
    case 'invalid_recipient':
      return invalid
    case 'destination_not_allowed':
      return another('NotAllowed')
    case 'challenge_required': {
      // Only a proof of work has it. A gateway may have sent this code without any.
      const { challenge: work } = (problem.challenge ?? {}) as { challenge?: AltchaChallenge }
      return work && !hashOf(work) ? setup : { name: 'challengeFailed' }
    }
    case 'offline':
      return { name: 'offline' }
    case 'forbidden':
      return problem.reason === 'origin'
        ? { name: 'otherOrigin', values: { origin }, isFault: true }
        : setup
    case 'invalid_request': {
      // A gateway may have sent this code with other errors, or with none.
      const isAbout = (name: string) => problem.errors?.some?.(({ path }) => path === name)
      // The operator has changed the length of codes since the send.
      if (during === 'check' && isAbout('code')) return gone
      return isAbout('to') ? invalid : setup
    }
    default:
      return isUnanswered(problem) ? { name: 'unavailable' } : setup
  }
}

/** Whether the request may still have been carried out. It can then be repeated unchanged. */
export const isUnanswered = ({ code }: Problem) =>
  ['offline', 'unreachable', 'unavailable', 'internal', 'idempotency_in_progress'].includes(code)
