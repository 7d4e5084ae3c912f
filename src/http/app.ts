/**
 * The Express application: parse, authenticate, run a route, answer, and nothing else.
 *
 * The order of refusals: unknown path (404), method (405), key (401), body (415, 413, 400). Nothing is
 * read from a body before the key is known to be good, and nothing is counted before all of it passed.
 */
import { randomBytes } from 'node:crypto'
import express, { type Express, type Request, type Response } from 'express'
import type { ApiKeys } from '../access/api-keys.ts'
import type { Log } from '../base/log.ts'
import { Problem, Unavailable } from '../base/problems.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { checked, readBytes, readJson } from './body.ts'
import { limitableAddress } from './limitable-address.ts'
import { type Answer, problemAnswer } from './problem.ts'
import type { Route, RouteRequest } from './route.ts'

export function createApp(deps: {
  routes: readonly Route[]
  keys: ApiKeys
  metrics: Metrics
  log: Log
  trustProxyHops: number
}): Express {
  const { routes, keys, metrics, log } = deps
  const app = express()
  app.disable('x-powered-by')
  app.disable('etag')
  app.set('trust proxy', deps.trustProxyHops)
  app.set('query parser', 'simple')

  // Plain paths first: `/v1/notices/search` is not the notice with the id "search".
  const paths = [...new Set(routes.map((route) => route.path))]
  for (const path of paths.sort((a, b) => Number(a.includes(':')) - Number(b.includes(':')))) {
    const atPath = routes.filter((route) => route.path === path)
    for (const route of atPath) {
      app[route.method](path, (request, response) =>
        serve(route.path, request, response, () => run(route, request, response)),
      )
    }
    // Express answers HEAD by the GET route.
    const allow = atPath
      .map(({ method }) => (method === 'get' ? 'GET, HEAD' : method.toUpperCase()))
      .join(', ')
    app.all(path, (request, response) =>
      serve(path, request, response, async () => {
        throw new Problem('method_not_allowed', {}, { allow })
      }),
    )
  }
  app.use((request: Request, response: Response) =>
    serve('unknown', request, response, async () => {
      throw new Problem('not_found')
    }),
  )
  // Only Express itself gets here: a path that can't be decoded.
  app.use((_error: unknown, request: Request, response: Response, _next: unknown) =>
    serve('unknown', request, response, async () => {
      throw new Problem('invalid_request', {
        errors: [{ path: '', message: 'the address is not valid' }],
      })
    }),
  )

  async function run(route: Route, request: Request, response: Response): Promise<Answer> {
    const app = route.access === 'key' ? await appOf(request) : ''
    if (route.access === 'local' && !isLocal(request)) throw new Problem('forbidden')
    const facts = response.locals.facts as Record<string, string | number>
    if (app) facts.app = app
    const body = route.body ? checked(route.body, await readJson(request), '') : undefined
    const rawBody = route.rawBody ? await readBytes(request, route.rawBody.maxBytes) : noBytes
    const query = route.query ? checked(route.query, request.query, 'query') : request.query
    const routeRequest: RouteRequest = {
      app,
      requestId: response.locals.requestId,
      ip: callerOf(request),
      body,
      params: request.params as Record<string, string>,
      query: query as Record<string, unknown>,
      rawBody,
      headers: request.headers,
      header: (name) => request.get(name),
      note: (more) => Object.assign(facts, more),
    }
    return route.run(routeRequest)
  }

  /** What limits count: the address a trusted proxy names, or who is connected when that is none. */
  function callerOf(request: Request): string {
    const peer = request.socket.remoteAddress ?? ''
    // Express reads forwarding headers for every address, so it is asked only where proxies are trusted.
    const address = deps.trustProxyHops > 0 ? (request.ip ?? peer) : peer
    return limitableAddress(address) ?? limitableAddress(peer) ?? ''
  }

  async function appOf(request: Request): Promise<string> {
    const match = /^Bearer ([\x21-\x7e]{1,200})$/i.exec(request.headers.authorization ?? '')
    const key = match ? await keys.find(match[1] as string) : null
    if (!key) throw new Problem('unauthorized', {}, { 'www-authenticate': 'Bearer' })
    return key.app
  }

  /** Unique over processes by its random beginning, and far cheaper than a UUID. */
  const requestIdStart = randomBytes(6).toString('base64url')
  let requestCount = 0
  const nextRequestId = () => `${requestIdStart}-${(requestCount++).toString(36).padStart(6, '0')}`

  /** Answers, whatever happens in `work`, then counts and logs the request. */
  async function serve(
    route: string,
    request: Request,
    response: Response,
    work: () => Promise<Answer>,
  ): Promise<void> {
    const startMs = performance.now()
    const given = request.headers['x-request-id'] as string | undefined
    const requestId = given && /^[A-Za-z0-9_-]{8,64}$/.test(given) ? given : nextRequestId()
    const facts: Record<string, string | number> = {}
    response.locals.requestId = requestId
    response.locals.facts = facts
    let isRepeat = false
    let answer: Answer
    try {
      answer = await work()
    } catch (error) {
      const problem = asProblem(error, requestId)
      if (problem.code === 'internal' || problem.code === 'unavailable')
        log.requestFailed(requestId, error)
      facts.code = problem.code
      isRepeat = problem.isRepeat
      for (const name of ['policy', 'rule', 'retryAfterMs']) {
        if (name in problem.members) facts[name] = problem.members[name] as string | number
      }
      answer = problemAnswer(problem, request.headers['accept-language'])
    }
    write(response, answer, requestId)
    const durationMs = performance.now() - startMs
    const method = knownMethods.has(request.method) ? request.method : 'other'
    metrics.requests.inc({ route, method, status: answer.status })
    metrics.requestSeconds.observe({ route }, durationMs / 1_000)
    log.requestFinished(isRepeat, {
      requestId,
      method,
      route,
      status: answer.status,
      durationMs: Math.round(durationMs * 10) / 10,
      ...facts,
    })
  }

  return app
}

const noBytes = Buffer.alloc(0)

const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

function write(response: Response, answer: Answer, requestId: string): void {
  if (response.headersSent || response.destroyed) return
  const headers: Record<string, string | number> = {
    'x-request-id': requestId,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'content-type': 'application/json; charset=utf-8',
    ...answer.headers,
  }
  // What was not read of a refused body would be taken for the next request.
  if (answer.status === 413 || answer.status === 415) headers.connection = 'close'
  const text = answer.text ?? (answer.body === undefined ? '' : JSON.stringify(answer.body))
  if (text === '') delete headers['content-type']
  else headers['content-length'] = Buffer.byteLength(text)
  response.writeHead(answer.status, headers).end(text)
}

function asProblem(error: unknown, requestId: string): Problem {
  if (error instanceof Problem) return error
  if (error instanceof Unavailable) {
    return new Problem('unavailable', {}, { 'Retry-After': '2' })
  }
  return new Problem('internal', { requestId })
}

/** From this very machine, and not passed on by a proxy that runs on it. */
function isLocal(request: Request): boolean {
  const address = request.socket.remoteAddress ?? ''
  const isLoopback = address === '::1' || /^(::ffff:)?127\./.test(address)
  return isLoopback && request.headers['x-forwarded-for'] === undefined
}
