/**
 * Who may come in: the session of the cookie, and behind it a key that still opens the console; for what changes
 * something also that the form came from a page of ours. A browser names the page's origin with every form it posts,
 * and no other site can read the token that stands in ours.
 */
import type { Request } from 'express'
import type { KeyFacts } from '../access/key-store.ts'
import { limitableAddress } from '../base/limitable-address.ts'
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
  /** In the place of an app: a key that sees all of them. */
  everyApp: string
}) {
  const { sessions, signIn, findKeyById, everyApp } = deps

  return {
    /** Who is signed in; null when nobody is, or not any more. Throws Unavailable. */
    async visitorOf(request: Request): Promise<Visitor | null> {
      const token = sessionOf(request)
      const session = token ? await sessions.find(token) : null
      const key = session && (await findKeyById(session.keyId))
      if (!session || !key || key.isRevoked || key.kind !== 'operator') return null
      const apps = key.app === everyApp ? undefined : [key.app]
      return { operator: { keyId: key.id, name: key.name, apps }, csrf: session.csrf }
    },

    /** With a session's token when the key opens the console. Throws Unavailable. */
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

    /** Ends every session of the visitor's key, this one too. Throws Unavailable. */
    async leaveEverywhere({ operator }: Visitor): Promise<void> {
      await sessions.endAll(operator.keyId)
    },
  }
}

/** Whether a form was sent by a page of this host: a proxy must pass `Host` on as it was asked for. */
export function isFromHere({ headers }: Request): boolean {
  const { origin, host } = headers
  return origin !== undefined && URL.canParse(origin) && new URL(origin).host === host
}

export const hasToken = ({ csrf }: Visitor, given: string | undefined): boolean =>
  isSameSecret(given ?? '', csrf)
