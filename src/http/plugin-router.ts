/** Mounts a plugin's router. Its answers are counted; its errors are answered and logged like errors of Postern. */
import type { RequestHandler } from 'express'
import type { Metrics } from '../base/metrics.ts'
import { Problem, problems } from '../base/problems.ts'
import { invalid } from './problem.ts'
import { countAnswer, knownMethods, type Respond } from './respond.ts'

export interface NamedRouter {
  readonly name: string
  readonly router: RequestHandler
}

/** Paths unknown to the router go on to the next handler. */
export function createPluginRouter(
  { name, router }: NamedRouter,
  respond: Respond,
  metrics: Metrics,
): RequestHandler {
  // The route label is fixed, because a plugin's path may contain anything.
  const route = `plugin ${name}`
  const statuses = [problems.internal.status, problems.unavailable.status]
  metrics.startRequestsAtZero(
    route,
    [...knownMethods, 'other'].flatMap((method) => statuses.map((status) => ({ method, status }))),
  )
  return async (request, response, next) => {
    const startMs = performance.now()
    const count = () => countAnswer(metrics, route, request, response.statusCode, startMs)
    response.once('finish', count)
    async function answerFault(error: unknown): Promise<void> {
      response.off('finish', count)
      await respond(route, request, response, () => Promise.reject(problemIn(error)))
      // Half an answer can't be repaired, so the connection ends.
      if (!response.writableEnded) response.destroy()
    }
    try {
      // The router may be a plain handler. No Express router would then catch its rejected promise.
      await router(request, response, (error?: unknown) => {
        if (error !== undefined && error !== null) return void answerFault(error)
        response.off('finish', count)
        next()
      })
    } catch (error) {
      await answerFault(error)
    }
  }
}

/** Types of the errors of `body-parser`. An error of a vendor's client can have a status and a type too, and is a fault. */
const parserFault = /^(entity|encoding|charset|request|parameters|stream)\./

/**
 * The parsers of Express, such as `express.json`, throw errors with a status and a type. Then the request was bad, and the
 * message can quote it. A plugin can throw any value, also one that throws when it is read.
 */
function problemIn(error: unknown): unknown {
  try {
    const { status, type } = error as { status?: unknown; type?: unknown }
    if (error instanceof Error && parserFault.test(String(type))) {
      if (status === 413) return new Problem('payload_too_large')
      if (status === 415) return new Problem('unsupported_media_type')
      if (Number(status) >= 400 && Number(status) < 500) return invalid('', 'can not be read')
    }
    return error instanceof Error && typeof error.message === 'string'
      ? error
      : new Error(String(error))
  } catch {
    return new Error('the plugin threw a value that can not be read')
  }
}
