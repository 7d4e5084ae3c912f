/** The two cookies of the console: the session and the chosen language. */
import type { Request } from 'express'

const sessionCookie = 'postern_console'
/** Browsers accept a name with the prefix `__Host-` only over https, from this host and for this host. */
const secureSessionCookie = `__Host-${sessionCookie}`
const languageCookie = 'postern_language'
const yearS = 365 * 86_400

/** Over https, only the `__Host-` cookie counts: another host or plain HTTP could have set the other one. */
export function sessionOf(request: Request): string | undefined {
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
