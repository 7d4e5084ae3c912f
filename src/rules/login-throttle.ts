/**
 * Login attempts. A try is counted before the password is compared, in one step with the decision, so
 * that parallel tries can't all pass; a success clears what was counted. Which rules hold is the policy
 * file's: by subject, by subject and address, or both, so that a stranger can't lock the owner out.
 */
import { canonical } from '../base/canonical.ts'
import type { Limiter, Policies, Refusal } from '../limiter/index.ts'

export interface AttemptSubject {
  policy: string
  app: string
  /** The account that is logged in to, as the caller names it. */
  subject: string
  /** The address the try came from; empty where the caller did not say. */
  ip: string
}

export type AttemptOutcome =
  /** `triesLeft` of the rules that can refuse; without any, the highest limit a rule may have. */
  { allowed: true; triesLeft: number } | { allowed: false; refusal: Refusal }

const unlimitedTries = 1_000_000_000

/** What the limiter counts by: another app's subject of the same name is another one. */
export function subjectOfApp(app: string, subject: string): string {
  return canonical([app, subject])
}

export type LoginThrottle = ReturnType<typeof createLoginThrottle>

export function createLoginThrottle(deps: {
  limiter: Limiter
  /** The rules as they are now. */
  policies: () => Policies
}) {
  const { limiter, policies } = deps
  const fieldsOf = ({ app, subject, ip }: AttemptSubject) => ({
    app,
    subject: subjectOfApp(app, subject),
    ip,
  })
  const rulesOf = (policy: string) => policies()[policy] ?? []

  return {
    /** Counts a try, or says why it may not be made. */
    async begin(attempt: AttemptSubject): Promise<AttemptOutcome> {
      // Servers ask, and those are asked for no challenge.
      const options = { isSolved: true }
      const decision = await limiter.acquire(attempt.policy, fieldsOf(attempt), options)
      if (!decision.admitted) return { allowed: false, refusal: decision }
      const passing = rulesOf(attempt.policy).filter(({ mode = 'enforce' }) => mode !== 'enforce')
      const left = decision.remaining
        .filter(({ rule }) => !passing.some(({ name }) => name === rule))
        .map((window) => window.left)
      return { allowed: true, triesLeft: Math.min(unlimitedTries, ...left) }
    },

    /**
     * Forgets the tries and lifts the lock: after a success, or by support. A rule whose key does not
     * name the subject keeps its count, or the owner of one account could log in to it between guesses
     * at others. False, and nothing done, when the policy locks no subject.
     */
    async clear(attempt: AttemptSubject): Promise<boolean> {
      const ofSubject = rulesOf(attempt.policy).filter(({ fields }) => fields.includes('subject'))
      if (!ofSubject.some(({ kind }) => kind === 'lockout')) return false
      await Promise.all(
        ofSubject.map(({ name }) => limiter.reset(attempt.policy, fieldsOf(attempt), name)),
      )
      return true
    },
  }
}
