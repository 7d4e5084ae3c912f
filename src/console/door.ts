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

/** The two cookies of the console: the session and the chosen language. */
const sessionCookie = 'postern_console'
/** Browsers accept a name with the prefix `__Host-` only over https, from this host and for this host. */
const secureSessionCookie = `__Host-${sessionCookie}`
const languageCookie = 'postern_language'
const yearS = 365 * 86_400

/** Over https, only the `__Host-` cookie counts: another host or plain HTTP could have set the other one. */
function sessionOf(request: Request): string | undefined {
  const secure = cookieOf(request, secureSessionCookie)
  return secure ?? (isHttps(request) ? undefined : cookieOf(request, sessionCookie))
}
export const chosenLanguageOf = (request: Request) => cookieOf(request, languageCookie)

function cookieOf({ headers }: Request, name: string): string | undefined {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim())
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1)
}

/**
 * Whether the browser uses https. Browsers send `Origin` with each form, and most proxies send the header with each
 * request. A caller who forges one only gets the stricter cookie.
 */
const isHttps = ({ headers }: Request) =>
  headers.origin === `https://${headers.host}` || headers['x-forwarded-proto'] === 'https'

/**
 * The session cookie is only for pages of this site and unreadable for scripts. A closed browser drops the cookie;
 * Redis ends the session.
 */
export function sessionHeader(request: Request, token: string): string {
  const [name, secure] = isHttps(request) ? [secureSessionCookie, '; Secure'] : [sessionCookie, '']
  return `${name}=${token}; Path=/; HttpOnly; SameSite=Strict${secure}`
}

export const endOfSessionHeader = (request: Request) => `${sessionHeader(request, '')}; Max-Age=0`

export const languageHeader = (language: string) =>
  `${languageCookie}=${language}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${yearS}`
