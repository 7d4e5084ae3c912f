/** Mounts a plugin's router. Its errors are answered, counted and logged like errors of Postern. */
import type { RequestHandler } from 'express'
import type { Metrics } from '../base/metrics.ts'
import { problems } from '../base/problems.ts'
import { knownMethods, type Respond } from './respond.ts'

export interface NamedRouter {
  /** The name of the plugin. */
  readonly name: string
  readonly router: RequestHandler
}

/** Paths unknown to the router go on to the next handler. */
export function createBeside(
  { name, router }: NamedRouter,
  respond: Respond,
  metrics: Metrics,
): RequestHandler {
  // The route label is fixed, because a plugin's path may contain anything.
  const route = `plugin ${name}`
  const { status } = problems.internal
  const methods = [...knownMethods, 'other']
  metrics.startRequestsAtZero(
    route,
    methods.map((method) => ({ method, status })),
  )
  return async (request, response, next) => {
    async function answerFault(error: unknown): Promise<void> {
      await respond(route, request, response, () => Promise.reject(error))
      // Half an answer can't be repaired, so the connection ends.
      if (!response.writableEnded) response.destroy()
    }
    try {
      // The router may be a plain handler. No Express router would then catch its rejected promise.
      await router(request, response, (error?: unknown) => {
        if (error === undefined || error === null) next()
        else void answerFault(error)
      })
    } catch (error) {
      await answerFault(error)
    }
  }
}
