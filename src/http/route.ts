/** One list of routes makes the handlers, the 405 answers and the OpenAPI document, so these always agree. */
import type { ZodType } from 'zod'
import type { ProblemCode } from '../base/problems.ts'
import type { SendOutcome } from '../notice/message.ts'
import type { Caller } from '../rules/caller.ts'
import { invalid } from './problem.ts'
import type { RouteResult } from './respond.ts'

/** The facts about an API key that routes need. */
export interface Key {
  id: string
  app: string
  kind: 'secret' | 'publishable' | 'operator'
  /** Origins where a publishable key may be used, as browsers spell them. */
  origins: readonly string[]
}

/** The facts about a request that are known before its body is read. */
export interface RequestHead {
  params: Readonly<Record<string, string | undefined>>
  query: Readonly<Record<string, unknown>>
  headers: Readonly<Record<string, string | string[] | undefined>>
}

export interface RouteRequest<Body = unknown> extends RequestHead {
  /** On open routes the caller has no app. */
  caller: Caller
  /** The path where a host has mounted the router, e.g. `/otp`; empty in the standalone API. */
  basePath: string
  body: Body
  /** The raw bytes, on routes with `admitBody`; empty on all others. */
  rawBody: Buffer
  /** Facts for this request's log line; ids and names only. */
  note(facts: Readonly<Record<string, string | number>>): void
  /** On open routes: the sender has proved who it is, so its answer does not give way. */
  admit(): void
}

export interface Route<Body = unknown> {
  method: 'get' | 'post' | 'delete'
  /** The path with its parameters, such as `/v1/notices/:id`. */
  path: string
  name: string
  summary: string
  /** `secret` needs a secret API key; `page` accepts publishable keys too; `local` needs a caller on this machine. */
  access: 'secret' | 'page' | 'local' | 'open'
  body?: ZodType<Body>
  /** The members that a publishable key may send, if not all of `body`. */
  pageBody?: ZodType<Body>
  /** A second form of the body. */
  otherForm?: {
    /** True if the caller means this form. */
    isMeant(body: unknown): boolean
    body: ZodType
    pageBody: ZodType
  }
  /**
   * For bodies in a foreign format, whose raw bytes may have any content type. Called before a byte of the body is
   * read. Returns the maximum length in bytes. Throws Problem.
   */
  admitBody?(head: RequestHead): number
  query?: ZodType
  answers: Readonly<Record<number, { description: string; schema?: ZodType }>>
  /** Problems of this route, in addition to the problems of every route. */
  problems: readonly ProblemCode[]
  /** This GET stores something, so HEAD is refused: scanners of links send it. */
  hasNoHead?: true
  /** This route reads rows for programs, pages and support. Few reads run at a time, and apps take turns. */
  isRead?: true
  /** This route makes a notice and accepts `Idempotency-Key`. */
  isSend?: true
  /** Throws Unavailable if a server is out of reach. */
  run(request: RouteRequest<Body>): Promise<RouteResult>
}

/** Routes that need a key of any kind. */
export const isKeyed = ({ access }: Route) => access === 'secret' || access === 'page'

/** A route that answers GET answers HEAD too, if it only reads. */
export const methodsOf = ({ method, hasNoHead }: Route) =>
  method === 'get' && !hasNoHead ? ['GET', 'HEAD'] : [method.toUpperCase()]

/** Infers the type of a route's body from its schema. The result has no such type, so all routes fit into one list. */
export function defineRoute<Body>(route: Route<Body>): Route {
  return route as unknown as Route
}

/** Sends what the body asks for, under the Idempotency-Key of the request. */
export async function answerSend<Body extends { template: string }>(
  { basePath, body, headers, caller, note }: RouteRequest<Body>,
  send: (
    asked: Body & { idempotencyKey: string | undefined },
    caller: Caller,
  ) => Promise<SendOutcome>,
): Promise<RouteResult> {
  const sent = await send({ ...body, idempotencyKey: idempotencyKeyOf(headers) }, caller)
  if (sent.outcome !== 'accepted') return sent
  const { outcome: _, ...accepted } = sent
  const { id, channel } = accepted
  note({ noticeId: id, channel, template: body.template })
  return { status: 202, headers: { location: `${basePath}/v1/notices/${id}` }, body: accepted }
}

export function idempotencyKeyOf(headers: RouteRequest['headers']): string | undefined {
  const key = headers['idempotency-key'] as string | undefined
  if (key === undefined || /^[\x21-\x7e]{1,255}$/.test(key)) return key
  throw invalid('Idempotency-Key', 'visibleAscii')
}
