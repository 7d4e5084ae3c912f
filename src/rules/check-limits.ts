/**
 * What the limits say of checking one recipient's codes for one caller: callers from pages are asked a policy of their own,
 * and a send wants to know what a check would meet.
 */
import type { Admission, Limiter, Policies, Refusal } from '../limiter/index.ts'
import { afterPass } from './after-pass.ts'
import { pageCheckPolicy, pageGuessPolicy } from './policies.ts'
import type { Asked, Fields, Origin, Quota } from './quota.ts'

/** Kept with a code until it passes: what its send took from rules with `refund: passed`. */
interface Refund {
  policy: string
  fields: Fields
}

export type CheckLimits = ReturnType<typeof createCheckLimits>

export function createCheckLimits(deps: {
  quota: Quota
  limiter: Limiter
  /** The rules as they are now. */
  policies: () => Policies
}) {
  const { quota, limiter, policies } = deps

  /** The policy that is asked before a code is compared, and the fields that its keys may use. */
  function guessOf(owner: Asked, origin: Origin): { policy: string; fields: Fields } {
    const policy = origin.isPage ? pageGuessPolicy : 'check'
    return { policy, fields: quota.checkFieldsOf(owner, origin) }
  }

  const refusingRules = (policy: string) =>
    (policies()[policy] ?? []).filter(({ mode }) => mode === 'enforce')

  /** Undefined when a guess would be admitted after all; it is not counted then. `isSilent`: as in quota.acquire. */
  function refusalOfNext(owner: Asked, origin: Origin, isSilent: boolean) {
    const { policy, fields } = guessOf(owner, origin)
    return quota.findRefusal(policy, fields, true, isSilent)
  }

  /** What holds against a guess now. Counts nothing and begins no lock. */
  async function peek(owner: Asked, origin: Origin) {
    const { policy, fields } = guessOf(owner, origin)
    const refusing = refusingRules(policy).map(({ name }) => name)
    if (refusing.length === 0) return []
    const states = await limiter.peek(policy, fields)
    return states.filter(({ rule }) => refusing.includes(rule))
  }

  return {
    guessOf,

    /** To be kept with a code, and given to `refund` when it passes. Undefined where no rule of the send's policy wants it. */
    refundOf(policy: string, fields: Fields): string | undefined {
      const isRefunded = policies()[policy]?.some(({ refund }) => refund === 'passed')
      return isRefunded ? JSON.stringify({ policy, fields } satisfies Refund) : undefined
    },

    /** Gives back what the send of a code took, now that the code has passed. */
    async refund(kept: string, noticeId: string): Promise<void> {
      const { policy, fields } = JSON.parse(kept) as Refund
      await limiter.refund(policy, fields, noticeId)
    },

    /** A right code is no guess: see after-pass.ts. */
    async forgive(policy: string, fields: Fields, requestId: string): Promise<void> {
      const { cleared, givenBack } = afterPass(policies()[policy] ?? [])
      if (givenBack.length > 0) quota.release(policy, fields, requestId, givenBack)
      await Promise.all(cleared.map((rule) => limiter.reset(policy, fields, rule)))
    },

    /** For how long from now no guess is compared; 0: the next one is. */
    async waitMsOf(owner: Asked, origin: Origin): Promise<number> {
      return Math.max(0, ...(await peek(owner, origin)).map(({ nextInMs }) => nextInMs))
    },

    /** The refusal of a lock that holds now. */
    async findLock(owner: Asked, origin: Origin): Promise<Refusal | undefined> {
      const states = await peek(owner, origin)
      const isLocked = states.some(({ lockedForMs }) => lockedForMs !== undefined)
      return isLocked ? refusalOfNext(owner, origin, false) : undefined
    },

    /**
     * For how long no guess is compared after a wrong one that was admitted. A lock-out that it has filled locks now
     * and not at the next guess: so the person hears at once how long to wait.
     */
    async holdAfter(
      owner: Asked,
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
     * A caller from a page asks about a code that is not there. Without an id, so that nothing is kept but the count
     * of each rule, which the rule's own time ends.
     */
    async visit(owner: Asked, origin: Origin, isHuman: boolean): Promise<Refusal | undefined> {
      if (!origin.isPage) return undefined
      const fields = quota.checkFieldsOf(owner, origin)
      const decision = await limiter.acquire(pageCheckPolicy, fields, { isSolved: isHuman })
      return decision.admitted ? undefined : decision
    },
  }
}
