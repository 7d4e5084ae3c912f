/**
 * Whether a key opens the console. Only an operator key does. A secret key is stored on the servers of an app. If it is stolen
 * there, the thief must not be able to read every recipient.
 *
 * A key can't be guessed, so the right key works after any number of wrong keys. A limit for right keys would only let a
 * stranger lock the operators out. `access/api-keys.ts` bounds the cost of a wrong key: a made-up key causes no query,
 * and unknown keys share one statement at a time. Wrong keys are throttled by address, with a rule that is not in the
 * policy file. The metrics count them.
 */
import type { ApiKey } from '../access/api-keys.ts'
import type { Meter } from '../base/meter.ts'
import type { Limiter, RawPolicies } from '../limiter/index.ts'

export const signInPolicies: RawPolicies = {
  signIn: [{ name: 'address', key: '{ip}', lockout: { limit: 10, window: '5m', lock: '5m' } }],
}

export const signInMetrics = ({ counter }: Meter) => ({
  signIns: counter('postern_console_sign_ins_total', 'Sign-ins to the console, by result.', {
    outcome: ['ok', 'wrong', 'not_operator', 'wait'] satisfies SignedIn['kind'][],
  }),
})

export type SignedIn =
  | { kind: 'ok'; key: ApiKey }
  | { kind: 'wrong' | 'not_operator' }
  | { kind: 'wait'; retryAfterMs: number }

export type SignIn = ReturnType<typeof createSignIn>

export function createSignIn(deps: {
  /** A limiter with the policies above. */
  limiter: Pick<Limiter, 'acquire'>
  authenticate: (token: string) => Promise<ApiKey | null>
  /** Called with the result of every sign-in. */
  onTried: (outcome: SignedIn['kind']) => void
}) {
  const { limiter, authenticate, onTried } = deps

  async function tryKey(token: string, ip: string): Promise<SignedIn> {
    const key = await authenticate(token)
    if (key?.kind === 'operator') return { kind: 'ok', key }
    const decision = await limiter.acquire('signIn', { ip })
    if (!decision.admitted) return { kind: 'wait', retryAfterMs: decision.retryAfterMs }
    return { kind: key ? 'not_operator' : 'wrong' }
  }

  /** Throws Unavailable when Redis or PostgreSQL does not answer. Such a sign-in is not counted as a wrong key. */
  return async function signIn(token: string, ip: string): Promise<SignedIn> {
    const signedIn = await tryKey(token, ip)
    onTried(signedIn.kind)
    return signedIn
  }
}
