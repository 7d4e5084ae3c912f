/** Makes an answer in every case, then counts and logs the request. */
import type { ServerResponse } from 'node:http'
import type { Request, Response } from 'express'
import { createBatcher } from '../base/batcher.ts'
import type { Log } from '../base/log.ts'
import { Problem } from '../base/problems.ts'
import { Unavailable } from '../base/unavailable.ts'
import type { Refused } from '../rules/refused.ts'
import { ClientGone, NoRoom } from './body.ts'
import type { HttpMetrics } from './metrics.ts'
import { type Answer, problemAnswer, problemOf } from './problem.ts'
import {
  addressOf,
  beginRequest,
  type Call,
  clientClosed,
  createEndRequest,
  refusalFacts,
} from './request-record.ts'
import type { UnderWay } from './under-way.ts'

/**
 * Refusals in floods (limits, wrong codes) are returned. Throwing through every await costs more than all their other
 * work. Other problems may be thrown.
 */
export type RouteResult = Answer | Problem | Refused

/** Makes the answer. Throws Problem, Unavailable, or an unexpected error. */
type Work = (call: Call) => Promise<RouteResult>

export type Respond = ReturnType<typeof createRespond>

export function createRespond(deps: {
  metrics: HttpMetrics
  log: Log
  /** Counts requests under way, and refuses new ones while the process stops. */
  underWay: UnderWay
}) {
  const { underWay } = deps
  const endRequest = createEndRequest(deps)
  /**
   * Resolves in the next turn of the event loop. Refusals of one turn are written together: written one by one between
   * other requests, each wakes its reader, which was half of the processor time of a refusal.
   */
  const nextTurn = createBatcher<void, void>({
    maxItems: Number.POSITIVE_INFINITY,
    maxConcurrent: 1,
    run: async () => {},
  })

  /** `route` is the path of the contract, never the path of the request. Never rejects. */
  return async function respond(
    route: string,
    request: Request,
    response: Response,
    work: Work,
    call = beginRequest(request, underWay.waitedAtSocketMs()),
  ): Promise<void> {
    const { requestId, facts } = call
    let outcome: Answer | Problem
    const isTaken = underWay.begin()
    let isGone = false
    try {
      const made = isTaken ? await work(call) : unavailable()
      outcome = 'outcome' in made ? problemOf(made) : made
    } catch (error) {
      outcome = asProblem(error, requestId)
      isGone = error instanceof ClientGone
      if (!(error instanceof Problem) || error instanceof NoRoom) call.failure = error
    }
    if (outcome instanceof Problem) {
      Object.assign(facts, refusalFacts(outcome.code, outcome.members))
      outcome = problemAnswer(outcome, request.headers['accept-language'])
    }
    if (isGone) return end(clientClosed)
    if (facts.app === undefined && !call.isKnown) {
      await underWay.giveWay({
        app: call.isOfListedPage ? 'page' : '',
        caller: addressOf(request),
      })
    } else if (outcome.status >= 400) await nextTurn()
    write(response, outcome, requestId, underWay.isClosing())
    end(outcome.status)

    function end(status: number): void {
      if (isTaken) underWay.end()
      endRequest(route, request, call, status)
    }
  }
}

function asProblem(error: unknown, requestId: string): Problem {
  if (error instanceof Problem) return error
  if (error instanceof Unavailable) return unavailable()
  return new Problem('internal', { requestId })
}

export const unavailable = () => new Problem('unavailable', {}, { 'Retry-After': '2' })

/** Writes with Node's methods: Express would compute an ETag for answers that no cache may keep. */
export function write(
  response: ServerResponse,
  answer: Answer,
  requestId: string,
  isLast: boolean,
): void {
  if (response.headersSent || response.destroyed) return
  const headers: Record<string, string | number> = {
    'x-request-id': requestId,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'content-type': 'application/json; charset=utf-8',
    ...answer.headers,
  }
  // Unread bytes of a refused body would be parsed as the next request, so the connection closes.
  if (isLast || answer.status === 413 || answer.status === 415) headers.connection = 'close'
  const text = answer.text ?? (answer.body === undefined ? '' : JSON.stringify(answer.body))
  if (text.length === 0) delete headers['content-type']
  else headers['content-length'] = Buffer.byteLength(text)
  response.writeHead(answer.status, headers).end(text)
}
