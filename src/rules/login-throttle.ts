/**
 * Limits login attempts. An attempt is counted before the password is compared, in one step with the decision, so
 * parallel attempts can't all pass. A success clears the count. The policy file chooses the rules: by subject, by
 * subject and address, or both, so that a stranger can't lock out the owner.
 */
import { canonical } from '../base/canonical.ts'
import type { Limiter, Policies, Refusal } from '../limiter/index.ts'

export interface AttemptSubject {
  policy: string
  app: string
  /** The account, as the caller names it. */
  subject: string
  /** The address of the person; empty if the caller did not give it. */
  ip: string
}

export type AttemptOutcome =
  /** `triesLeft`: the tries until a rule refuses. If no rule can refuse, it is the highest possible limit. */
  { allowed: true; triesLeft: number } | { allowed: false; refusal: Refusal }

const unlimitedTries = 1_000_000_000

/** The subject for the limiter. Subjects of different apps differ, even with the same name. */
export function subjectOfApp(app: string, subject: string): string {
  return canonical([app, subject])
}

export type LoginThrottle = ReturnType<typeof createLoginThrottle>

export function createLoginThrottle(deps: { limiter: Limiter; policies: () => Policies }) {
  const { limiter, policies } = deps
  const fieldsOf = ({ app, subject, ip }: AttemptSubject) => ({
    app,
    subject: subjectOfApp(app, subject),
    ip,
  })
  const rulesOf = (policy: string) => policies()[policy] ?? []

  return {
    /** Counts an attempt, or returns the refusal. */
    async begin(attempt: AttemptSubject): Promise<AttemptOutcome> {
      // Only servers call this, and servers never get a challenge.
      const options = { isSolved: true }
      const decision = await limiter.acquire(attempt.policy, fieldsOf(attempt), options)
      if (!decision.admitted) return { allowed: false, refusal: decision }
      const refusing = rulesOf(attempt.policy).filter(({ mode }) => mode === 'enforce')
      const names = refusing.map(({ name }) => name)
      const left = decision.remaining.flatMap(({ rule, left }) =>
        names.includes(rule) ? left : [],
      )
      return { allowed: true, triesLeft: Math.min(unlimitedTries, ...left) }
    },

    /**
     * Forgets the attempts and lifts the lock, after a success or by support. A rule without the subject in its key
     * keeps its count. Otherwise the owner of one account could clear it between guesses at others. False, without
     * effect, if the policy has no lockout by subject.
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
