/**
 * Limits login attempts. An attempt is counted before the password is compared, in one step with the decision, so
 * parallel attempts can't all pass. A success clears the count. The policy file chooses the rules: by subject, by
 * subject and address, or both, so that a stranger can't lock out the owner.
 */
import { canonical } from '../base/canonical.ts'
import { wideAddress } from '../base/limitable-address.ts'
import type { Admission, Limiter, Policies, Refusal, Rule } from '../limiter/index.ts'

export interface AttemptSubject {
  policy: string
  app: string
  /** The account, as the caller names it. */
  subject: string
  /** The address of the person, if the caller gave it. Rules by address need it. */
  ip: string | undefined
}

export type AttemptOutcome =
  /** `triesLeft`: the tries until a rule refuses. If no rule can refuse, it is the highest possible limit. */
  { allowed: true; triesLeft: number } | { allowed: false; refusal: Refusal }

const unlimitedTries = 1_000_000_000

/** The subject for the limiter. Subjects of different apps differ, even with the same name. */
export function subjectOfApp(app: string, subject: string): string {
  return canonical([app, subject])
}

/** The calls that each window of a rule still admits. A call takes the rule's permits. */
export function triesLeftOf({ name, permits }: Rule, { remaining }: Admission): number[] {
  const each = typeof permits === 'number' ? permits : 1
  return remaining.filter(({ rule }) => rule === name).map(({ left }) => Math.floor(left / each))
}

export type LoginThrottle = ReturnType<typeof createLoginThrottle>

export function createLoginThrottle(deps: { limiter: Limiter; policies: () => Policies }) {
  const { limiter, policies } = deps
  const fieldsOf = ({ app, subject, ip }: AttemptSubject) => ({
    app,
    subject: subjectOfApp(app, subject),
    ip,
    ipWide: ip && wideAddress(ip),
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
      const left = refusing.flatMap((rule) => triesLeftOf(rule, decision))
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
