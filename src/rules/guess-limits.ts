/**
 * The limits on checks of codes for one caller. Callers in pages have separate policies, and a send reports current locks of
 * checks. A guess is counted for each address to which a notice with the code was sent. So a code for several notices gives
 * an attacker no more guesses at any address.
 */
import { type NoticeId, type RequestId, requestIdOf } from '../base/ids.ts'
import type { Admission, Limiter, Policies, Refusal, Rule } from '../limiter/index.ts'
import type { Origin } from './caller.ts'
import { triesLeftOf } from './login-throttle.ts'
import { pageCheckPolicy, pageGuessPolicy } from './policies.ts'
import type { Fields, LimitFacts, Quota } from './quota.ts'

/** The uses that a send took from rules with `refund: passed`. Stored with the code until it passes. */
interface Refund {
  policy: string
  fields: Fields
  /** Absent in codes that an earlier version stored. They have the request of their notice. */
  requestId?: RequestId
}

/** A guess that the rules have admitted and counted. */
export interface CountedGuess {
  policy: string
  fields: Fields
  requestId: RequestId
  admission: Admission
}

/** `refusal`: by a lock that began. */
export interface Hold {
  waitMs: number
  refusal?: Refusal | undefined
}

export type GuessLimits = ReturnType<typeof createGuessLimits>

export function createGuessLimits(deps: {
  quota: Quota
  limiter: Limiter
  policies: () => Policies
}) {
  const { quota, limiter, policies } = deps

  /** The policy for a guess, and the fields for its keys. */
  function guessOf(owner: LimitFacts, origin: Origin): { policy: string; fields: Fields } {
    const policy = origin.isPage ? pageGuessPolicy : 'check'
    return { policy, fields: quota.checkFieldsOf(owner, origin) }
  }

  async function clear({ policy, fields, requestId }: CountedGuess): Promise<void> {
    const { cleared, givenBack } = afterPass(policies()[policy] ?? [])
    if (givenBack.length > 0) quota.release(policy, fields, requestId, givenBack)
    await Promise.all(cleared.map((rule) => limiter.reset(policy, fields, rule)))
  }

  /** Undoes the counts, now or when Redis answers again. */
  function giveBack(counts: readonly CountedGuess[]): void {
    for (const { policy, fields, requestId } of counts) quota.release(policy, fields, requestId)
  }

  async function holdOf({ policy, fields, admission }: CountedGuess): Promise<Hold> {
    const { nextInMs } = admission
    if (nextInMs === 0) return { waitMs: 0 }
    const isFull = (policies()[policy] ?? [])
      .filter(({ kind, mode }) => kind === 'lockout' && mode === 'enforce')
      .some((rule) => triesLeftOf(rule, admission).includes(0))
    const refusal = isFull
      ? await quota.acquireAndRelease(policy, fields, true, true).catch(() => undefined)
      : undefined
    return { waitMs: refusal?.retryAfterMs ?? (isFull ? 0 : nextInMs), refusal }
  }

  return {
    /**
     * Counts a guess for all addresses under the request id, or for none and returns the refusal. `isHuman`: rules in mode
     * challenge admit it.
     */
    async count(
      guessed: readonly { owner: LimitFacts; origin: Origin }[],
      requestId: RequestId,
      isHuman: boolean,
    ): Promise<{ counts: CountedGuess[] } | { refusal: Refusal }> {
      const counts: CountedGuess[] = []
      let isCounted = false
      try {
        for (const { owner, origin } of guessed) {
          const { policy, fields } = guessOf(owner, origin)
          const decision = await quota.acquire(policy, fields, requestId, isHuman)
          if (!decision.admitted) return { refusal: decision }
          counts.push({ policy, fields, requestId, admission: decision })
        }
        isCounted = true
        return { counts }
      } finally {
        if (!isCounted) giveBack(counts)
      }
    },

    giveBack,

    /**
     * After a right code: gives back and clears uses as `afterPass` decides. The answer does not wait for it, because the
     * person's next request comes later.
     */
    forgive(counts: readonly CountedGuess[]): void {
      for (const counted of counts) clear(counted).catch(() => {})
    },

    /** Gives back the uses of the send of a code that passed. `onPass` is from `refundOf`. No answer waits for it. */
    refund({ noticeId, onPass }: { noticeId: NoticeId; onPass?: string }): void {
      if (!onPass) return
      const { policy, fields, requestId = requestIdOf(noticeId) }: Refund = JSON.parse(onPass)
      limiter.refund(policy, fields, requestId).catch(() => {})
    },

    /**
     * The longest wait until another guess is compared, after a wrong guess. 0 if a guess may follow, or if Redis gives no
     * answer. If the guess reached the limit of a lockout, the lock begins now and not at the next guess. So the
     * answer can report the wait at once.
     */
    async afterMismatch(counts: readonly CountedGuess[]): Promise<Hold> {
      const holds = await Promise.all(counts.map(holdOf))
      const waitMs = Math.max(...holds.map((hold) => hold.waitMs))
      return { waitMs, refusal: holds.find(({ refusal }) => refusal)?.refusal }
    },

    /** A text that is stored with a code, for `refund` when it passes. Undefined if no rule of the policy refunds. */
    refundOf(policy: string, fields: Fields, requestId: RequestId): string | undefined {
      const isRefunded = policies()[policy]?.some(({ refund }) => refund === 'passed')
      return isRefunded ? JSON.stringify({ policy, fields, requestId } satisfies Refund) : undefined
    },

    /** Milliseconds until the next guess is compared; 0: now. */
    async waitMsOf(owner: LimitFacts, origin: Origin): Promise<number> {
      const { policy, fields } = guessOf(owner, origin)
      return quota.nextInMs(policy, fields)
    },

    /** Refuses the check if a lock applies to it. */
    async refuseIfLocked(owner: LimitFacts, origin: Origin): Promise<Refusal | undefined> {
      const { policy, fields } = guessOf(owner, origin)
      const states = await limiter.peek(policy, fields)
      const isLocked = states.some(({ lockedForMs }) => lockedForMs !== undefined)
      if (!isLocked) return undefined
      return quota.acquireAndRelease(policy, fields, true)
    },

    /**
     * Counts a check from a page for a recipient without a live code. The call has no request id, so Redis keeps no
     * id for each such check. The counts end with the times of the rules.
     */
    async countWithoutCode(
      owner: LimitFacts,
      origin: Origin,
      isHuman: boolean,
    ): Promise<Refusal | undefined> {
      if (!origin.isPage) return undefined
      const fields = quota.checkFieldsOf(owner, origin)
      const decision = await limiter.acquire(pageCheckPolicy, fields, { isSolved: isHuman })
      return decision.admitted ? undefined : decision
    },
  }
}

/**
 * The effects of a right code on the rules that its check has used, as two lists of their names. Every check is counted
 * before the code is compared. After a right code, rules that count wrong guesses take that use back.
 *
 * `givenBack`: rules that lose the use of this check. These are lockouts, rules in mode challenge and rules with
 * `refund: passed`. A rule in mode challenge is a budget of guesses; an owner who signs in often must not use it up.
 * Other rules count right codes like any use.
 *
 * `cleared`: rules that forget earlier wrong guesses too. These are lockouts with the recipient in their key. Other
 * rules are not cleared. Otherwise an attacker could clear guesses at other numbers by a sign-in with the right code of
 * another number.
 */
export function afterPass(rules: readonly Rule[]): { cleared: string[]; givenBack: string[] } {
  const isCleared = ({ kind, fields }: Rule) => kind === 'lockout' && fields.includes('to')
  const isUncounted = ({ kind, mode, refund }: Rule) =>
    kind === 'lockout' || mode === 'challenge' || refund === 'passed'
  const namesOf = (matches: (rule: Rule) => boolean) =>
    rules.filter(matches).map(({ name }) => name)
  return {
    cleared: namesOf(isCleared),
    givenBack: namesOf((rule) => isUncounted(rule) && !isCleared(rule)),
  }
}
