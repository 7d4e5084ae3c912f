/**
 * Whether a key opens the console. Only an operator's does: a secret key stands on servers of an app, and whoever
 * takes it from there must not read every recipient.
 *
 * A key can't be guessed; the limits are for whoever tries all the same, so that trying costs us little and is seen. They are
 * ours and in no policy file. What signs in gives its try back, so people in a hurry never meet them.
 */
import { randomUUID } from 'node:crypto'
import type { ApiKey } from '../access/api-keys.ts'
import type { Limiter, RawPolicies } from '../limiter/index.ts'

export const signInPolicies: RawPolicies = {
  signIn: [
    { name: 'address', key: '{ip}', lockout: { limit: 10, window: '5m', lock: '5m' } },
    { name: 'all', key: '{door}', sliding: '100 per 1m' },
  ],
}

export type SignedIn =
  | { kind: 'ok'; key: ApiKey }
  | { kind: 'wrong' }
  | { kind: 'not_operator' }
  | { kind: 'wait'; retryAfterMs: number }

export type SignIn = ReturnType<typeof createSignIn>

export function createSignIn(deps: {
  /** Holds the policies above. */
  limiter: Pick<Limiter, 'acquire' | 'release'>
  findKey: (token: string) => Promise<ApiKey | null>
}) {
  const { limiter, findKey } = deps

  /** Throws Unavailable when Redis or PostgreSQL is out of reach. */
  return async function signIn(token: string, ip: string): Promise<SignedIn> {
    const fields = { ip, door: 'console' }
    const requestId = randomUUID()
    const decision = await limiter.acquire('signIn', fields, { requestId })
    if (!decision.admitted) return { kind: 'wait', retryAfterMs: decision.retryAfterMs }
    let key: ApiKey | null
    try {
      key = await findKey(token)
    } catch (error) {
      // Not a try: it is not known whether the key was wrong.
      await limiter.release('signIn', fields, requestId).catch(() => {})
      throw error
    }
    if (!key) return { kind: 'wrong' }
    if (key.kind !== 'operator') return { kind: 'not_operator' }
    await limiter.release('signIn', fields, requestId)
    return { kind: 'ok', key }
  }
}
