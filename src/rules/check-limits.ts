/**
 * The limits on checks of one recipient's codes for one caller. Callers in pages have separate policies, and a send
 * reports current locks of checks.
 */
import type { Admission, Limiter, Policies, Refusal } from '../limiter/index.ts'
import { afterPass } from './after-pass.ts'
import { pageCheckPolicy, pageGuessPolicy } from './policies.ts'
import type { Fields, LimitFacts, Origin, Quota } from './quota.ts'

/** The uses that a send took from rules with `refund: passed`. Stored with the code until it passes. */
interface Refund {
  policy: string
  fields: Fields
}

export type CheckLimits = ReturnType<typeof createCheckLimits>

export function createCheckLimits(deps: {
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

  const refusingRules = (policy: string) =>
    (policies()[policy] ?? []).filter(({ mode }) => mode === 'enforce')

  /** The refusal of the next guess, undefined without one. Counts nothing. `isSilent`: as in quota.acquire. */
  function refusalOfNext(owner: LimitFacts, origin: Origin, isSilent: boolean) {
    const { policy, fields } = guessOf(owner, origin)
    return quota.findRefusal(policy, fields, true, isSilent)
  }

  /** The state of the rules that can refuse a guess. Counts nothing and begins no lock. */
  async function peek(owner: LimitFacts, origin: Origin) {
    const { policy, fields } = guessOf(owner, origin)
    const refusing = refusingRules(policy).map(({ name }) => name)
    if (refusing.length === 0) return []
    const states = await limiter.peek(policy, fields)
    return states.filter(({ rule }) => refusing.includes(rule))
  }

  return {
    guessOf,

    /** A text that is stored with a code, for `refund` when it passes. Undefined if no rule of the policy refunds. */
    refundOf(policy: string, fields: Fields): string | undefined {
      const isRefunded = policies()[policy]?.some(({ refund }) => refund === 'passed')
      return isRefunded ? JSON.stringify({ policy, fields } satisfies Refund) : undefined
    },

    /** Gives back the uses of a send after its code has passed. */
    async refund(stored: string, noticeId: string): Promise<void> {
      const { policy, fields } = JSON.parse(stored) as Refund
      await limiter.refund(policy, fields, noticeId)
    },

    /** Gives back and clears uses after a right code, as after-pass.ts decides. */
    async forgive(policy: string, fields: Fields, requestId: string): Promise<void> {
      const { cleared, givenBack } = afterPass(policies()[policy] ?? [])
      if (givenBack.length > 0) quota.release(policy, fields, requestId, givenBack)
      await Promise.all(cleared.map((rule) => limiter.reset(policy, fields, rule)))
    },

    /** Milliseconds until the next guess is compared; 0: now. */
    async waitMsOf(owner: LimitFacts, origin: Origin): Promise<number> {
      return Math.max(0, ...(await peek(owner, origin)).map(({ nextInMs }) => nextInMs))
    },

    /** The refusal by a current lock. */
    async findLock(owner: LimitFacts, origin: Origin): Promise<Refusal | undefined> {
      const states = await peek(owner, origin)
      const isLocked = states.some(({ lockedForMs }) => lockedForMs !== undefined)
      return isLocked ? refusalOfNext(owner, origin, false) : undefined
    },

    /**
     * Milliseconds until a guess is compared, after a wrong guess. If the guess reached the limit of a lock-out, the
     * lock begins now and not at the next guess. So the answer can report the wait at once.
     */
    async holdAfter(
      owner: LimitFacts,
      origin: Origin,
      { remaining, nextInMs }: Admission,
    ): Promise<{ waitMs: number; refusal?: Refusal | undefined }> {
      const lockouts = refusingRules(guessOf(owner, origin).policy)
        .filter(({ kind }) => kind === 'lockout')
        .map(({ name }) => name)
      const isFull = remaining.some(({ rule, left }) => left === 0 && lockouts.includes(rule))
      const refusal = isFull ? await refusalOfNext(owner, origin, true) : undefined
      return { waitMs: refusal?.retryAfterMs ?? (isFull ? 0 : nextInMs), refusal }
    },

    /**
     * Counts a check from a page for a recipient without a live code. The call has no request id, so
     * the limiter remembers only the counts, which end with the times of the rules.
     */
    async visit(owner: LimitFacts, origin: Origin, isHuman: boolean): Promise<Refusal | undefined> {
      if (!origin.isPage) return undefined
      const fields = quota.checkFieldsOf(owner, origin)
      const decision = await limiter.acquire(pageCheckPolicy, fields, { isSolved: isHuman })
      return decision.admitted ? undefined : decision
    },
  }
}
