import type { OncePerKey } from '../notice/once-per-key.ts'
import type { Caller } from '../rules/caller.ts'
import type { Fields, Quota } from '../rules/quota.ts'
import { type Limited, limitedBy } from '../rules/refused.ts'

export type RefuseEarly = ReturnType<typeof createRefuseEarly>

/**
 * Refuses a send of a page before its Idempotency-Key is reserved. A request that will be refused must not take a turn. The
 * exception is a repeat, whose key is already known.
 */
export function createRefuseEarly(deps: {
  oncePerKey: Pick<OncePerKey, 'isNew'>
  quota: Pick<Quota, 'remembersRefusal' | 'acquireAndRelease'>
}) {
  const { oncePerKey, quota } = deps
  return async function refuseEarly(
    {
      policy,
      fields,
      challenge,
      idempotencyKey,
    }: {
      policy: string
      fields: Fields
      challenge?: string | undefined
      idempotencyKey?: string | undefined
    },
    caller: Caller,
    answerBy: number,
  ): Promise<Limited | undefined> {
    if (!caller.isPage || idempotencyKey === undefined) return undefined
    const isHuman = challenge !== undefined
    const isRefused = quota.remembersRefusal(policy, fields, isHuman)
    const isNew = isRefused && (await oncePerKey.isNew(idempotencyKey, caller, answerBy))
    const refusal = isNew ? await quota.acquireAndRelease(policy, fields, isHuman) : undefined
    return refusal && limitedBy(policy, refusal)
  }
}
