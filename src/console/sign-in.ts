/**
 * Whether a key opens the console. Only an operator's does: a secret key stands on servers of an app, and whoever
 * takes it from there must not read every recipient.
 *
 * A key can't be guessed, so the right one opens whatever was tried before it: a limit that it could meet would only let
 * a stranger shut everybody out. What a wrong one costs is bounded where keys are looked up (access/api-keys.ts): made-up
 * ones ask nobody, and unknown ones share one statement at a time. Tries are counted by address to turn away who goes on,
 * by a rule of ours that is in no policy file, and in the metrics, so that they are seen.
 */
import type { ApiKey } from '../access/api-keys.ts'
import type { Limiter, RawPolicies } from '../limiter/index.ts'

export const signInPolicies: RawPolicies = {
  signIn: [{ name: 'address', key: '{ip}', lockout: { limit: 10, window: '5m', lock: '5m' } }],
}

export type SignedIn =
  | { kind: 'ok'; key: ApiKey }
  | { kind: 'wrong' }
  | { kind: 'not_operator' }
  | { kind: 'wait'; retryAfterMs: number }

export type SignIn = ReturnType<typeof createSignIn>

export function createSignIn(deps: {
  /** Holds the policies above. */
  limiter: Pick<Limiter, 'acquire'>
  findKey: (token: string) => Promise<ApiKey | null>
  /** Told what every try came to. */
  onTried: (outcome: SignedIn['kind']) => void
}) {
  const { limiter, findKey, onTried } = deps

  async function tryKey(token: string, ip: string): Promise<SignedIn> {
    const key = await findKey(token)
    if (key?.kind === 'operator') return { kind: 'ok', key }
    const decision = await limiter.acquire('signIn', { ip })
    if (!decision.admitted) return { kind: 'wait', retryAfterMs: decision.retryAfterMs }
    return { kind: key ? 'not_operator' : 'wrong' }
  }

  /** Throws Unavailable when Redis or PostgreSQL is out of reach: not a try, as nobody knows whether the key was wrong. */
  return async function signIn(token: string, ip: string): Promise<SignedIn> {
    const signedIn = await tryKey(token, ip)
    onTried(signedIn.kind)
    return signedIn
  }
}
