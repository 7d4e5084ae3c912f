/** A plugin's router beside ours. Its faults are answered, counted and logged like faults of our own. */
import type { RequestHandler } from 'express'
import type { Metrics } from '../base/metrics.ts'
import { problems } from '../base/problems.ts'
import { knownMethods, type Respond } from './respond.ts'

export interface NamedRouter {
  /** The plugin's. */
  readonly name: string
  readonly router: RequestHandler
}

/** Paths that are not the router's go on to the next handler. */
export function createBeside(
  { name, router }: NamedRouter,
  respond: Respond,
  metrics: Metrics,
): RequestHandler {
  // A path of a plugin may hold whatever a caller writes.
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
      // Half an answer can't be mended, only ended.
      if (!response.writableEnded) response.destroy()
    }
    try {
      // A plain handler's promise is seen by no router of its own.
      await router(request, response, (error?: unknown) => {
        if (error === undefined || error === null) next()
        else void answerFault(error)
      })
    } catch (error) {
      await answerFault(error)
    }
  }
}
