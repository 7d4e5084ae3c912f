/** The console's two cookies: who is signed in, and which language was chosen. */
import type { Request } from 'express'

const sessionCookie = 'postern_console'
/** A browser takes a name that begins so only by https, from this very host and for it. */
const secureSessionCookie = `__Host-${sessionCookie}`
const languageCookie = 'postern_language'
const yearS = 365 * 86_400

/** By https the cookie of a neighbouring host, or of plain HTTP, is not a Postern cookie. */
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
 * Whether the browser came by https: it says so with each form, and most proxies with each request. Who makes that up
 * is only offered the stricter cookie.
 */
const isHttps = ({ headers }: Request) =>
  headers.origin === `https://${headers.host}` || headers['x-forwarded-proto'] === 'https'

/** For this site's own pages alone and no script. It is kept until the browser is closed: its end is the session's, in Redis. */
export function sessionHeader(request: Request, token: string): string {
  const [name, secure] = isHttps(request) ? [secureSessionCookie, '; Secure'] : [sessionCookie, '']
  return `${name}=${token}; Path=/; HttpOnly; SameSite=Strict${secure}`
}

export const endOfSessionHeader = (request: Request) => `${sessionHeader(request, '')}; Max-Age=0`

export const languageHeader = (language: string) =>
  `${languageCookie}=${language}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${yearS}`
