/**
 * One list of routes is the whole of the HTTP room: it makes the routes, the 405 answers and
 * the OpenAPI document, so these can't differ.
 */
import type { ZodType } from 'zod'
import type { ApiKey } from '../access/api-keys.ts'
import type { Problem, ProblemCode } from '../base/problems.ts'
import type { Answer } from './problem.ts'

/** What is known of a request before its body is read. */
export interface RequestHead {
  params: Readonly<Record<string, string | undefined>>
  query: Readonly<Record<string, unknown>>
  headers: Readonly<Record<string, string | string[] | undefined>>
}

export interface RouteRequest<Body = unknown> extends RequestHead {
  /** Whose key it was; of no app on open routes. */
  key: Readonly<ApiKey>
  requestId: string
  /** Where a host has mounted us, e.g. `/otp`; empty in our own app. */
  basePath: string
  /** The caller's address, after the trusted proxies. */
  ip: string
  body: Body
  /** As it came, on routes that ask for it; empty elsewhere. */
  rawBody: Buffer
  /** Facts for this request's log line; ids and names only. */
  note(facts: Readonly<Record<string, string | number>>): void
}

interface RouteFacts<Body> {
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
}

/**
 * Refusals that come in floods (limits, wrong codes) are returned, because throwing through every await
 * costs more than all else they do; others may be thrown. Throws Unavailable when a server is out of reach.
 */
type Run<Body> = (request: RouteRequest<Body>) => Promise<Answer | Problem>

/** A request's own try at making a notice. */
export interface SendAttempt {
  /** The notice's id. */
  id: string
  /** By `performance.now()`: after it the caller is owed an answer. */
  answerBy: number
}

/** Routes that make a notice honour `Idempotency-Key`. */
export interface SendRoute<Body = unknown> extends RouteFacts<Body> {
  send(request: RouteRequest<Body>, attempt: SendAttempt): Promise<Answer | Problem>
  /**
   * How to refuse the request, where this process remembers that the limits do. The refusal is undefined if that has changed
   * meanwhile; nothing is taken then.
   */
  recall?(
    request: RouteRequest<Body>,
    attempt: SendAttempt,
  ): (() => Promise<Problem | undefined>) | undefined
  /** The answer to what an earlier request made under this id; null if it was not and will not be sent. */
  adopt(request: RouteRequest<Body>, attempt: SendAttempt): Promise<Answer | Problem | null>
}

export type Route<Body = unknown> = SendRoute<Body> | (RouteFacts<Body> & { run: Run<Body> })

export const isSendRoute = (route: Route): route is SendRoute => 'send' in route

/** Needs a key of whatever kind. */
export const isKeyed = ({ access }: Route) => access === 'secret' || access === 'page'

/** A route that answers GET answers HEAD too. */
export const methodsOf = ({ method }: Route) =>
  method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()]

/** Lets a route's body type follow from its schema, and forgets it for the list. */
export function defineRoute<Body>(route: Route<Body>): Route {
  return route as unknown as Route
}
