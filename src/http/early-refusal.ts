/**
 * Refuses requests of an overload before Express has them, and before their body is read and checked. Under twice the
 * load that a process can carry, it refuses as many requests as it answers. So a refusal must cost a small part of a
 * send, or nothing is left for sends.
 *
 * It uses the same turns as the router (under-way.ts), and refuses only what would get no turn there. A request whose
 * head has another fault goes on to the router: an unknown key, a page of another origin, a body that is too long.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Request, Response } from 'express'
import type { Log } from '../base/log.ts'
import { preferredLanguage } from '../base/preferred-language.ts'
import { Overloaded } from '../base/unavailable.ts'
import { maxBodyBytes } from './body.ts'
import { allowOrigin } from './cors.ts'
import type { HttpMetrics } from './metrics.ts'
import { type Answer, problemAnswer } from './problem.ts'
import { addressOf, beginRequest, createEndRequest, type Facts } from './request-record.ts'
import { unavailable, write } from './respond.ts'
import { isKeyed, type Key, type Route } from './route.ts'
import { tokenOf } from './router.ts'
import type { UnderWay } from './under-way.ts'

/** True: the request is answered. */
export type EarlyRefusal = (request: IncomingMessage, response: ServerResponse) => boolean

export function createEarlyRefusal(deps: {
  routes: readonly Route[]
  /** The key as it was when PostgreSQL was last asked. */
  lastKnown: (token: string) => Key | undefined
  metrics: HttpMetrics
  log: Log
  underWay: UnderWay
}): EarlyRefusal {
  const { lastKnown, underWay } = deps
  const endRequest = createEndRequest(deps)
  const routes = new Map(
    deps.routes
      .filter((route) => isKeyed(route) && !route.isRead && route.method === 'post')
      .map((route) => [route.path, route]),
  )
  const answers = new Map<string, Answer>()
  /** Answers of one turn of the event loop are written together. Each write between two reads would wake its reader. */
  let unwritten: (() => void)[] = []

  function answerIn(language: string): Answer {
    let answer = answers.get(language)
    if (!answer) {
      const { body, ...head } = problemAnswer(unavailable(), language)
      answer = { ...head, text: JSON.stringify(body) }
      answers.set(language, answer)
    }
    return answer
  }

  function writeAll(): void {
    const all = unwritten
    unwritten = []
    for (const writeOne of all) writeOne()
  }

  return function refuse(incoming, outgoing): boolean {
    if (!underWay.isCrowded() || underWay.isClosing()) return false
    const [request, response] = [incoming as Request, outgoing as Response]
    const { method, url, headers } = request
    const route = method === 'POST' ? routes.get(url) : undefined
    const key = route && lastKnown(tokenOf(request) ?? '')
    if (!key || !mayAsk(key, route, headers.origin) || !isShort(headers)) return false
    const waitedMs = underWay.waitedAtSocketMs()
    if (!underWay.wouldRefuse({ app: key.app, caller: addressOf(request), waitedMs })) return false
    if (key.kind === 'publishable' && headers.origin) allowOrigin(headers.origin, response)
    const call = beginRequest(request, waitedMs)
    const facts: Facts = { app: key.app, keyId: key.id, code: 'unavailable' }
    Object.assign(call, { facts, failure: overloaded })
    const answer = answerIn(preferredLanguage(headers['accept-language']))
    if (unwritten.length === 0) setImmediate(writeAll)
    unwritten.push(() => {
      write(response, answer, call.requestId, underWay.isClosing())
      endRequest(route.path, request, call, answer.status)
    })
    return true
  }
}

const overloaded = new Overloaded('process', 'no turn in time')

const mayAsk = ({ kind, origins }: Key, route: Route, origin: string | undefined) =>
  kind === 'secret' ||
  (kind === 'publishable' &&
    route.access === 'page' &&
    (origin === undefined || origins.includes(origin)))

/** Node reads the rest of a refused body, so that the connection can be used again. */
const isShort = ({ 'content-length': length }: IncomingMessage['headers']) =>
  Number(length) <= maxBodyBytes
