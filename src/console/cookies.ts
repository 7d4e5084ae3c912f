/** The console's two cookies: who is signed in, and which language was chosen. */
import type { Request } from 'express'

const sessionCookie = 'postern_console'
const languageCookie = 'postern_language'
const yearS = 365 * 86_400

export const sessionOf = (request: Request) => cookieOf(request, sessionCookie)
export const chosenLanguageOf = (request: Request) => cookieOf(request, languageCookie)

function cookieOf({ headers }: Request, name: string): string | undefined {
  const pairs = (headers.cookie ?? '').split(';').map((pair) => pair.trim())
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1)
}

/**
 * For this site's own pages alone and no script. It is kept until the browser is closed: its end is the session's, in Redis.
 * `Secure` wherever the browser itself says that it came by https, whatever a proxy says.
 */
export function sessionHeader(request: Request, token: string): string {
  const isSecure = request.headers.origin?.startsWith('https:')
  return `${sessionCookie}=${token}; Path=/; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
}

export const endOfSessionHeader = `${sessionCookie}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0`

export const languageHeader = (language: string) =>
  `${languageCookie}=${language}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${yearS}`
