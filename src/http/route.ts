/**
 * One list of routes is the whole of the HTTP room: it makes the routes, the 405 answers and
 * the OpenAPI document, so these can't differ.
 */
import type { ZodType } from 'zod'
import type { ProblemCode } from '../base/problems.ts'
import type { Caller } from '../rules/quota.ts'
import type { Outcome } from './respond.ts'

/** An API key, as far as requests are concerned. */
export interface Key {
  id: string
  app: string
  kind: 'secret' | 'publishable' | 'operator'
  /** Where a publishable key may be used from, as browsers spell it. */
  origins: readonly string[]
}

/** What is known of a request before its body is read. */
export interface RequestHead {
  params: Readonly<Record<string, string | undefined>>
  query: Readonly<Record<string, unknown>>
  headers: Readonly<Record<string, string | string[] | undefined>>
}

export interface RouteRequest<Body = unknown> extends RequestHead {
  /** Of no app on open routes. */
  caller: Caller
  /** Where a host has mounted us, e.g. `/otp`; empty in our own app. */
  basePath: string
  body: Body
  /** As it came, on routes that ask for it; empty elsewhere. */
  rawBody: Buffer
  /** Facts for this request's log line; ids and names only. */
  note(facts: Readonly<Record<string, string | number>>): void
}

export interface Route<Body = unknown> {
  method: 'get' | 'post' | 'delete'
  /** With parameters as in `/v1/notices/:id`. */
  path: string
  name: string
  summary: string
  /**
   * `secret`: a secret API key is needed; `page`: a publishable one does too; `local`: callers on this
   * machine only.
   */
  access: 'secret' | 'page' | 'local' | 'open'
  body?: ZodType<Body>
  /** What a publishable key may send of it; `body` where it may send all. */
  pageBody?: ZodType<Body>
  /**
   * The body is of another's making: taken as bytes, of any content type. Looks at the request before a
   * byte of the body is read and says how many bytes it may have. Throws Problem.
   */
  admitBody?(head: RequestHead): number
  query?: ZodType
  answers: Readonly<
    Record<
      number,
      {
        description: string
        schema?: ZodType
        /** As OpenAPI describes them. */
        headers?: Readonly<Record<string, { description: string; schema: { type: 'string' } }>>
      }
    >
  >
  /** Beside those every route has. */
  problems: readonly ProblemCode[]
  /** Makes a notice, and honours `Idempotency-Key`. */
  isSend?: true
  /** Throws Unavailable when a server is out of reach. */
  run(request: RouteRequest<Body>): Promise<Outcome>
}

/** Needs a key of whatever kind. */
export const isKeyed = ({ access }: Route) => access === 'secret' || access === 'page'

/** A route that answers GET answers HEAD too. */
export const methodsOf = ({ method }: Route) =>
  method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()]

/** Lets a route's body type follow from its schema, and forgets it for the list. */
export function defineRoute<Body>(route: Route<Body>): Route {
  return route as unknown as Route
}
