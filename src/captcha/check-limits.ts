/**
 * What the limits say of checking one recipient's codes for one caller: callers from pages are asked a policy of their own,
 * and a send wants to know what a check would meet.
 */
import { randomUUID } from 'node:crypto'
import type { Admission, Limiter, Policies, Refusal } from '../limiter/index.ts'
import type { Fields, Origin, Quota } from '../notice/quota.ts'
import { pageCheckPolicy, pageGuessPolicy } from '../rules/policies.ts'
import type { CodeOwner } from './code-store.ts'

export type CheckLimits = ReturnType<typeof createCheckLimits>

export function createCheckLimits(deps: {
  quota: Quota
  limiter: Limiter
  /** The rules as they are now. */
  policies: () => Policies
}) {
  const { quota, limiter, policies } = deps

  /** The policy that is asked before a code is compared, and the fields that its keys may use. */
  function guessOf(owner: CodeOwner, origin: Origin): { policy: string; fields: Fields } {
    const policy = origin.isPage ? pageGuessPolicy : 'check'
    return { policy, fields: quota.checkFieldsOf(owner, origin) }
  }

  const refusingRules = (policy: string) =>
    (policies()[policy] ?? []).filter(({ mode }) => mode === 'enforce')

  /** Undefined when a guess would be admitted after all; it is not counted then. `isSilent`: as in quota.acquire. */
  async function refusalOfNext(
    owner: CodeOwner,
    origin: Origin,
    isSilent: boolean,
  ): Promise<Refusal | undefined> {
    const { policy, fields } = guessOf(owner, origin)
    const requestId = randomUUID()
    const decision = await quota.acquire(policy, fields, requestId, true, isSilent)
    if (!decision.admitted) return decision
    quota.release(policy, fields, requestId)
    return undefined
  }

  /** What holds against a guess now. Counts nothing and begins no lock. */
  async function peek(owner: CodeOwner, origin: Origin) {
    const { policy, fields } = guessOf(owner, origin)
    const refusing = refusingRules(policy).map(({ name }) => name)
    if (refusing.length === 0) return []
    const states = await limiter.peek(policy, fields)
    return states.filter(({ rule }) => refusing.includes(rule))
  }

  return {
    guessOf,

    /** For how long from now no guess is compared; 0: the next one is. */
    async waitMsOf(owner: CodeOwner, origin: Origin): Promise<number> {
      return Math.max(0, ...(await peek(owner, origin)).map(({ nextInMs }) => nextInMs))
    },

    /** The refusal of a lock that holds now. */
    async findLock(owner: CodeOwner, origin: Origin): Promise<Refusal | undefined> {
      const states = await peek(owner, origin)
      const isLocked = states.some(({ lockedForMs }) => lockedForMs !== undefined)
      return isLocked ? refusalOfNext(owner, origin, false) : undefined
    },

    /**
     * For how long no guess is compared after a wrong one that was admitted. A lock-out that it has filled locks now
     * and not at the next guess: so the person hears at once how long to wait.
     */
    async holdAfter(
      owner: CodeOwner,
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
    async visit(owner: CodeOwner, origin: Origin, isHuman: boolean): Promise<Refusal | undefined> {
      if (!origin.isPage) return undefined
      const fields = quota.checkFieldsOf(owner, origin)
      const decision = await limiter.acquire(pageCheckPolicy, fields, { isSolved: isHuman })
      return decision.admitted ? undefined : decision
    },
  }
}
