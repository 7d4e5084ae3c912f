/**
 * CORS headers (Fetch standard): only for publishable keys, and only for the origins they list. Without these headers
 * a browser hides the answer from the page. Secret keys never get them, so a page with a secret key fails at once.
 *
 * A page of an unlisted origin may read one answer: the fixed 403 with the reason. Its preflight stays refused, so its
 * real request is never sent. The page reads the 403 after a request without preflight, such as a plain GET
 * (docs/decisions/0011-a-page-reads-why-it-is-refused.md).
 */
import type { Request, Response } from 'express'
import { orLate } from '../base/deadline.ts'
import { Problem } from '../base/problems.ts'
import type { Answer } from './problem.ts'
import type { Key } from './route.ts'

const requestHeaders = 'Authorization, Content-Type, Idempotency-Key'
const exposedHeaders = 'Retry-After, RateLimit, RateLimit-Policy, X-Request-Id, Location'
/** After a new origin or a revoked key, every page sees the change within ten minutes. */
const preflightGoodForS = 600
/** A refusal waits no longer than this for the list of origins. Without the list, the page can't read the reason. */
const patienceMs = 250

/** An OPTIONS request without these headers does not come from a browser's CORS check. */
export const isPreflight = ({ method, headers }: Request) =>
  method === 'OPTIONS' &&
  headers.origin !== undefined &&
  headers['access-control-request-method'] !== undefined

/** A page must not learn whether a secret or operator key works, even a revoked one. */
const isNotForPages = (token: string | undefined) => /^p[so]k_/.test(token ?? '')

/** Tracers of pages send the other two beside `traceparent`. Postern does not read them. */
const traceHeaders = 'Traceparent, Tracestate, Baggage'

/** `takesTraces`: pages may send the headers of a trace. */
export function createCors(isListed: (origin: string) => Promise<boolean>, takesTraces: boolean) {
  const allowed = takesTraces ? `${requestHeaders}, ${traceHeaders}` : requestHeaders
  return {
    /** A preflight carries no key, so the answer covers the origins of all valid keys. */
    async preflight(
      { headers: { origin = '' } }: Request,
      response: Response,
      methods: readonly string[],
    ): Promise<Answer | Problem> {
      if (!(await isListed(origin))) return refusedOrigin('unlistedOrigin')
      response.vary('Origin')
      return {
        status: 204,
        headers: {
          'access-control-allow-origin': origin,
          'access-control-allow-methods': methods.join(', '),
          'access-control-allow-headers': allowed,
          'access-control-max-age': String(preflightGoodForS),
        },
      }
    },

    /** Lets the page read the coming answer. Throws Problem if the key does not list this page. */
    admit(key: Key, request: Request, response: Response): void {
      const { origin } = request.headers
      // Apps that show a page (web views) may send no origin.
      if (key.kind !== 'publishable' || origin === undefined) return
      allowOrigin(origin, response)
      if (!key.origins.includes(origin)) throw refusedOrigin('otherOrigin')
    },

    /** Like `admit`, for refusals before the key is known. Never throws. */
    async admitUnknown(
      token: string | undefined,
      { headers: { origin } }: Request,
      response: Response,
    ): Promise<void> {
      if (origin === undefined || isNotForPages(token)) return
      if (await isKnownToList(origin)) allowOrigin(origin, response)
    },

    /** Like `admitUnknown`, and returns the refusal for a page whose origin no key lists. */
    async refuseUnlisted(
      token: string | undefined,
      { headers: { origin } }: Request,
      response: Response,
    ): Promise<Problem | undefined> {
      if (origin === undefined || isNotForPages(token)) return undefined
      const isKnown = await isKnownToList(origin)
      if (isKnown !== undefined) allowOrigin(origin, response)
      return isKnown === false ? refusedOrigin('unlistedOrigin') : undefined
    },
  }

  /** Undefined if the list is not available now. */
  async function isKnownToList(origin: string): Promise<boolean | undefined> {
    return orLate(isListed(origin), patienceMs, () => undefined).catch(() => undefined)
  }
}

export function allowOrigin(origin: string, response: Response): void {
  response.setHeader('access-control-allow-origin', origin)
  response.setHeader('access-control-expose-headers', exposedHeaders)
  // A host's middleware may have set other values.
  response.vary('Origin')
}

const refusedOrigin = (says: 'otherOrigin' | 'unlistedOrigin') =>
  new Problem('forbidden', { reason: 'origin' }, {}, says)
