/**
 * Signs operators in and out, and finds the operator of every request: by the session in the cookie. The key of the
 * session must still be allowed to open the console.
 *
 * A form that changes something must also come from a page of this console. Browsers send the origin of the page with
 * every form, and no other site can read the CSRF token.
 */
import type { Request } from 'express'
import type { KeyFacts } from '../access/key-store.ts'
import { limitableAddress } from '../base/limitable-address.ts'
import { everyApp } from '../base/names.ts'
import { isSameSecret } from '../crypto/same-secret.ts'
import { sessionOf } from './cookies.ts'
import type { Operator } from './page.ts'
import type { Sessions } from './sessions.ts'
import type { SignedIn, SignIn } from './sign-in.ts'

export interface Visitor {
  operator: Operator
  csrf: string
}

export type Door = ReturnType<typeof createDoor>

export function createDoor(deps: {
  sessions: Sessions
  signIn: SignIn
  findKeyById: (id: string) => Promise<KeyFacts | undefined>
}) {
  const { sessions, signIn, findKeyById } = deps

  return {
    /** The signed-in operator; null without a valid session. Throws Unavailable. */
    async visitorOf(request: Request): Promise<Visitor | null> {
      const token = sessionOf(request)
      const session = token ? await sessions.find(token) : null
      const key = session && (await findKeyById(session.keyId))
      if (!session || !key || key.isRevoked || key.kind !== 'operator') return null
      const apps = key.app === everyApp ? undefined : [key.app]
      return { operator: { keyId: key.id, name: key.name, apps }, csrf: session.csrf }
    },

    /** Returns the token of a new session when the key opens the console. Throws Unavailable. */
    async enter(request: Request, key: string): Promise<SignedIn & { token?: string }> {
      const address = request.socket.remoteAddress ?? ''
      const signedIn = await signIn(key, limitableAddress(address) ?? address)
      if (signedIn.kind !== 'ok') return signedIn
      const before = sessionOf(request)
      if (before) await sessions.end(before)
      return { ...signedIn, token: await sessions.start(signedIn.key.id) }
    },

    /** Throws Unavailable. */
    async leave(request: Request): Promise<void> {
      const token = sessionOf(request)
      if (token) await sessions.end(token)
    },

    /** Ends all sessions of the visitor's key, this one included. Throws Unavailable. */
    async leaveEverywhere({ operator }: Visitor): Promise<void> {
      await sessions.endAll(operator.keyId)
    },
  }
}

/** Whether a page of this host sent the form. A proxy must pass on the `Host` header unchanged. */
export function isFromHere({ headers }: Request): boolean {
  const { origin, host } = headers
  return origin !== undefined && URL.canParse(origin) && new URL(origin).host === host
}

export const hasToken = ({ csrf }: Visitor, given: string | undefined): boolean =>
  isSameSecret(given ?? '', csrf)
