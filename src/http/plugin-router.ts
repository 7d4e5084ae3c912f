/**
 * Mounts a plugin's router. Like routes of Postern, its requests are counted, logged and traced, and its errors answered.
 * The calls in process find the request that the router is answering, and note app, key, notice and refusal in it. So its
 * log line names them, and its span is the parent of their spans. The plugin needs no code for this.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { RequestHandler } from 'express'
import type { Log } from '../base/log.ts'
import { Problem, problems } from '../base/problems.ts'
import { statusOfRequestFault } from '../base/request-fault.ts'
import type { HttpMetrics } from './metrics.ts'
import { invalid } from './problem.ts'
import {
  addressOf,
  beginRequest,
  type Call,
  clientClosed,
  createEndRequest,
  knownMethods,
  startRequestSpan,
} from './request-record.ts'
import type { Respond } from './respond.ts'
import type { UnderWay } from './under-way.ts'

export interface NamedRouter {
  readonly name: string
  readonly router: RequestHandler
}

/** The request that a plugin answers, as the calls in process see it. */
export interface PluginCall extends Pick<Call, 'facts' | 'failure' | 'span' | 'waitedMs'> {
  /** The address of the plugin's caller. */
  readonly caller: string
  /**
   * The plugin has found out whose request it is. `isTrusted`: a secret key was given, so the caller's trace may be
   * continued. The first call counts.
   */
  admit(owner: { app: string; keyId?: string | undefined }, isTrusted: boolean): void
}

const current = new AsyncLocalStorage<PluginCall>()

/** Outside a plugin's router, what is noted is dropped. */
export const pluginCall = (): PluginCall =>
  current.getStore() ?? { caller: '', waitedMs: 0, facts: {}, admit() {} }

/** Paths unknown to the router go on to the next handler. */
export function createPluginRouter(
  { name, router }: NamedRouter,
  deps: { respond: Respond; metrics: HttpMetrics; log: Log; underWay: UnderWay },
): RequestHandler {
  const { respond, metrics, underWay } = deps
  const endRequest = createEndRequest(deps)
  // The route label is fixed, because a plugin's path may contain anything.
  const route = `plugin ${name}`
  const statuses = [problems.internal.status, problems.unavailable.status]
  metrics.startRequestsAtZero(
    route,
    [...knownMethods, 'other'].flatMap((method) => statuses.map((status) => ({ method, status }))),
  )
  return async (request, response, next) => {
    const call: Call & PluginCall = {
      ...beginRequest(request, underWay.waitedAtSocketMs()),
      get caller() {
        return addressOf(request)
      },
      admit({ app, keyId }, isTrusted) {
        if (call.isOver || call.span) return
        Object.assign(call.facts, keyId === undefined ? { app } : { app, keyId })
        call.span = startRequestSpan(route, request, call.startMs, isTrusted)
      },
    }
    const end = () => {
      const { headersSent, statusCode } = response
      endRequest(route, request, call, headersSent ? statusCode : clientClosed)
    }
    // A handler of the host may have waited before.
    if (response.closed) return end()
    response.once('close', end)
    const isNamed = response.hasHeader(requestIdHeader)
    if (!isNamed) response.setHeader(requestIdHeader, call.requestId)
    async function answerFault(error: unknown): Promise<void> {
      response.off('close', end)
      await respond(route, request, response, () => Promise.reject(problemIn(error)), call)
      // Half an answer can't be repaired, so the connection ends.
      if (!response.writableEnded) response.destroy()
    }
    function goOn(error?: unknown): void {
      if (error !== undefined && error !== null) return void answerFault(error)
      response.off('close', end)
      if (!isNamed) response.removeHeader(requestIdHeader)
      // The work of later handlers is no part of the plugin's request.
      current.exit(() => next())
    }
    try {
      // The router may be a plain handler. No Express router would then catch its rejected promise.
      await current.run(call, () => router(request, response, goOn))
    } catch (error) {
      await answerFault(error)
    }
  }
}

const requestIdHeader = 'x-request-id'

/** A plugin can throw any value, also one that throws when it is read. */
function problemIn(error: unknown): unknown {
  const status = statusOfRequestFault(error)
  if (status === 413) return new Problem('payload_too_large')
  if (status === 415) return new Problem('unsupported_media_type')
  if (status !== undefined) return invalid('', 'unreadable')
  try {
    return error instanceof Error && typeof error.message === 'string'
      ? error
      : new Error(String(error))
  } catch {
    return new Error('the plugin threw a value that cannot be read')
  }
}
