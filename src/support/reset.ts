/**
 * Support lets a person in again: forgets what was counted about a recipient, lifts locks, ends codes. It is
 * recorded first, so that nothing is done without a record; what was recorded and then not done, because Redis
 * was away, is asked for again.
 *
 * Only counts that name the recipient are touched. Those it shares with others (an address, a prefix, a country, the app)
 * would let an attacker in with the person.
 */
import type { CodeStore } from '../captcha/code-store.ts'
import type { Secrets } from '../crypto/secrets.ts'
import type { Limiter } from '../limiter/index.ts'
import type { Known } from './look-up.ts'
import type { Operations, Resettable } from './operations.ts'
import type { Asked } from './subjects.ts'

export interface ResetRequest extends Asked {
  what: readonly Resettable[]
  reason: string
  keyId: string
}

export type Reset = ReturnType<typeof createReset>

export function createReset(deps: {
  operations: Operations
  codes: Pick<CodeStore, 'drop'>
  limiter: Pick<Limiter, 'reset'>
  secrets: Pick<Secrets, 'recipientHashes'>
  findKnown: (asked: Asked) => Promise<Known>
}) {
  const { operations, codes, limiter, secrets, findKnown } = deps

  /** Throws Unavailable when PostgreSQL or Redis is out of reach. */
  return async function reset(request: ResetRequest): Promise<void> {
    const { app, channel, to, what, reason, keyId } = request
    const [recipientHash] = secrets.recipientHashes(channel, to)
    if (!recipientHash) throw new Error('a recipient has a hash')
    const { scenes, subjects } = await findKnown(request)
    await operations.record(app, recipientHash, { keyId, what: [...what], reason })
    const wanted = subjects.filter(({ rule, isPersonal }) => {
      return isPersonal && what.includes(rule.kind === 'lockout' ? 'lock' : 'limits')
    })
    await Promise.all([
      ...wanted.map(({ rule, fields }) => limiter.reset(rule.policy, fields, rule.name)),
      ...(what.includes('code')
        ? scenes.map((scene) => codes.drop({ app, scene, channel, to }))
        : []),
    ])
  }
}
