/** Mounts a plugin's router. Like routes of Postern, its requests are counted, logged and traced, and its errors answered. */
import type { RequestHandler } from 'express'
import type { Metrics } from '../base/metrics.ts'
import { Problem, problems } from '../base/problems.ts'
import { afterPlugin, whileAnswering } from './plugin-request.ts'
import { invalid } from './problem.ts'
import { beginRequest, clientClosed, type EndRequest, knownMethods } from './request-record.ts'
import type { Respond } from './respond.ts'
import type { UnderWay } from './under-way.ts'

export interface NamedRouter {
  readonly name: string
  readonly router: RequestHandler
}

/** Paths unknown to the router go on to the next handler. */
export function createPluginRouter(
  { name, router }: NamedRouter,
  {
    respond,
    endRequest,
    metrics,
    underWay,
  }: { respond: Respond; endRequest: EndRequest; metrics: Metrics; underWay: UnderWay },
): RequestHandler {
  // The route label is fixed, because a plugin's path may contain anything.
  const route = `plugin ${name}`
  const statuses = [problems.internal.status, problems.unavailable.status]
  metrics.startRequestsAtZero(
    route,
    [...knownMethods, 'other'].flatMap((method) => statuses.map((status) => ({ method, status }))),
  )
  return async (request, response, next) => {
    const call = beginRequest(request, underWay.waitedAtSocketMs())
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
    function passOn(): void {
      response.off('close', end)
      if (!isNamed) response.removeHeader(requestIdHeader)
      afterPlugin(next)
    }
    try {
      // The router may be a plain handler. No Express router would then catch its rejected promise.
      await whileAnswering({ route, request, call }, () =>
        router(request, response, (error?: unknown) => {
          if (error !== undefined && error !== null) return void answerFault(error)
          passOn()
        }),
      )
    } catch (error) {
      await answerFault(error)
    }
  }
}

const requestIdHeader = 'x-request-id'

/**
 * The parsers of Express, such as `express.json`, mark an error that the request caused with `expose`. Its router throws a
 * URIError for a bad escape in the path. Such a message can quote the request. An error of a vendor's client can have a
 * status and a type too, and is a fault. A plugin can throw any value, also one that throws when it is read.
 */
function problemIn(error: unknown): unknown {
  try {
    const { status, expose } = error as { status?: unknown; expose?: unknown }
    if (error instanceof URIError || (error instanceof Error && expose === true)) {
      if (status === 413) return new Problem('payload_too_large')
      if (status === 415) return new Problem('unsupported_media_type')
      if (Number(status) >= 400 && Number(status) < 500) return invalid('', 'unreadable')
    }
    return error instanceof Error && typeof error.message === 'string'
      ? error
      : new Error(String(error))
  } catch {
    return new Error('the plugin threw a value that cannot be read')
  }
}
