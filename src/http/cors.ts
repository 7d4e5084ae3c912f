/**
 * What a browser has to hear before it lets a page talk to us (CORS, Fetch standard): only for publishable keys,
 * only for the very origins they list. A browser that hears nothing keeps the answer from the page; so secret keys
 * hear nothing, and a page that has one finds out at once.
 *
 * A page of an origin that is not listed may read one thing: the fixed 403 that says so. Its preflight stays
 * refused, so no such page sends what it wants to; it reads the 403 as the answer to a request that needs no
 * preflight, such as a plain GET (docs/decisions/0011-a-page-reads-why-it-is-refused.md).
 */
import type { Request, Response } from 'express'
import { orLate } from '../base/deadline.ts'
import { Problem } from '../base/problems.ts'
import type { Answer } from './problem.ts'
import type { Key } from './route.ts'

const requestHeaders = 'Authorization, Content-Type, Idempotency-Key'
const exposedHeaders = 'Retry-After, RateLimit, RateLimit-Policy, X-Request-Id, Location'
/** A new origin or an ended key is seen by every page after ten minutes. */
const preflightGoodForS = 600
/** A refusal does not wait for the list of origins: without it the page only can't read why. */
const patienceMs = 250

/** An OPTIONS without these is a caller's own question. */
export const isPreflight = ({ method, headers }: Request) =>
  method === 'OPTIONS' &&
  headers.origin !== undefined &&
  headers['access-control-request-method'] !== undefined

/** A page must not learn what a secret or operator key does, also one that is revoked. */
const isNotForPages = (token: string | undefined) => /^p[so]k_/.test(token ?? '')

export function createCors(isListed: (origin: string) => Promise<boolean>) {
  return {
    /** A preflight carries no key, so it is answered for what any valid key lists. */
    async preflight(
      { headers: { origin = '' } }: Request,
      response: Response,
      methods: readonly string[],
    ): Promise<Answer | Problem> {
      if (!(await isListed(origin))) return new Problem('forbidden', unlisted)
      response.vary('Origin')
      return {
        status: 204,
        headers: {
          'access-control-allow-origin': origin,
          'access-control-allow-methods': methods.join(', '),
          'access-control-allow-headers': requestHeaders,
          'access-control-max-age': String(preflightGoodForS),
        },
      }
    },

    /** Lets the page read the answer, whatever it will be. Throws Problem where the key is not for this page. */
    admit(key: Key, request: Request, response: Response): void {
      const { origin } = request.headers
      // Apps that show a page of their own (web views) may send none.
      if (key.kind !== 'publishable' || origin === undefined) return
      allow(origin, response)
      if (!key.origins.includes(origin)) throw new Problem('forbidden', otherOrigin)
    },

    /** The same for what is refused before it is known whose key it is. Never throws. */
    async admitUnknown(
      token: string | undefined,
      { headers: { origin } }: Request,
      response: Response,
    ): Promise<void> {
      if (origin === undefined || isNotForPages(token)) return
      if (await isKnownToList(origin)) allow(origin, response)
    },

    /** What a page of an origin that is surely not listed reads; undefined for every other caller. Never throws. */
    async refuseUnlisted(
      token: string | undefined,
      { headers: { origin } }: Request,
      response: Response,
    ): Promise<Problem | undefined> {
      if (origin === undefined || isNotForPages(token)) return undefined
      if ((await isKnownToList(origin)) !== false) return undefined
      allow(origin, response)
      return new Problem('forbidden', unlisted)
    },
  }

  /** Undefined: not known now. */
  async function isKnownToList(origin: string): Promise<boolean | undefined> {
    return orLate(isListed(origin), patienceMs, () => undefined).catch(() => undefined)
  }
}

function allow(origin: string, response: Response): void {
  response.setHeader('access-control-allow-origin', origin)
  response.setHeader('access-control-expose-headers', exposedHeaders)
  // A host's own middleware may have named others.
  response.vary('Origin')
}

const reason = 'origin'
const otherOrigin = {
  message: {
    en: 'This key may not be used from this origin.',
    zh: '该密钥不允许在此来源 (Origin) 使用。',
  },
  reason,
}
const unlisted = {
  message: { en: 'No key lists this origin.', zh: '没有密钥列出此来源 (Origin)。' },
  reason,
}
