/**
 * The public door: find the route, authenticate, parse, run it, answer, and nothing else. Node's own
 * server and a router; what a framework would add is named in docs/decisions/0003.
 *
 * The order of refusals: unknown path (404), method (405), key (401), body (415, 413, 400). Nothing is
 * read from a body before the key is known to be good, and nothing is counted before all of it passed.
 */
import { type IncomingMessage, METHODS, type RequestListener, type ServerResponse } from 'node:http'
import findMyWay, { type HTTPMethod, type HTTPVersion } from 'find-my-way'
import proxyAddr from 'proxy-addr'
import type { ApiKeys } from '../access/api-keys.ts'
import { createShortIds } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { Problem, problems, Unavailable } from '../base/problems.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { type BodyShare, checked, createBodyRoom, readBytes, readJson } from './body.ts'
import { limitableAddress } from './limitable-address.ts'
import { problemCodesOf } from './openapi.ts'
import { type Answer, problemAnswer } from './problem.ts'
import type { Route, RouteRequest } from './route.ts'

type Facts = Record<string, string | number>
type Work = (requestId: string, facts: Facts) => Promise<Answer | Problem>

export function createApp(deps: {
  routes: readonly Route[]
  keys: ApiKeys
  metrics: Metrics
  log: Log
  trustProxyHops: number
  /** Of bodies held at a time: those under a key, and as much again for those without. */
  maxHeldBodyBytes?: number
}): RequestListener {
  const { routes, keys, metrics, log, maxHeldBodyBytes = 16_777_216 } = deps
  // Apart, so that a stranger's slow receipts can't take the room of sends.
  const keyedBodies = createBodyRoom(maxHeldBodyBytes)
  const openBodies = createBodyRoom(maxHeldBodyBytes)
  const newRequestId = createShortIds()
  startRequestsAtZero(metrics, routes)

  const router = findMyWay<HTTPVersion.V1>({
    ignoreTrailingSlash: true,
    defaultRoute: (request, response) =>
      serve('unknown', request, response, async () => new Problem('not_found')),
    onBadUrl: (_path, request, response) =>
      serve('unknown', request, response, async () => {
        const errors = [{ path: '', message: 'the address is not valid' }]
        return new Problem('invalid_request', { errors })
      }),
  })
  for (const path of new Set(routes.map((route) => route.path))) {
    const atPath = routes.filter((route) => route.path === path)
    for (const route of atPath) {
      router.on(methodsOf(route), path, (request, response, params, _store, query) =>
        serve(path, request, response, (requestId, facts) =>
          run(route, request, { params, query, requestId, facts }),
        ),
      )
    }
    const allowed = atPath.flatMap(methodsOf)
    const others = (METHODS as HTTPMethod[]).filter((method) => !allowed.includes(method))
    router.on(others, path, (request, response) =>
      serve(path, request, response, async () => {
        return new Problem('method_not_allowed', {}, { allow: allowed.join(', ') })
      }),
    )
  }

  async function run(
    route: Route,
    request: IncomingMessage,
    found: Pick<RouteRequest, 'params' | 'query' | 'requestId'> & { facts: Facts },
  ): Promise<Answer | Problem> {
    const app = route.access === 'key' ? await appOf(request) : ''
    if (route.access === 'local' && !isLocal(request)) {
      throw new Problem('forbidden', { message: notLocal })
    }
    if (app) found.facts.app = app
    const share = (app ? keyedBodies : openBodies).open()
    try {
      return await runWithBody(route, request, { ...found, app, share })
    } finally {
      share.close()
    }
  }

  async function runWithBody(
    route: Route,
    request: IncomingMessage,
    found: Pick<RouteRequest, 'app' | 'params' | 'query' | 'requestId'> & {
      facts: Facts
      share: BodyShare
    },
  ): Promise<Answer | Problem> {
    const { app, params, query, requestId, facts, share } = found
    const { headers } = request
    const rawBodyBytes = route.admitBody?.({ params, query, headers })
    return route.run({
      app,
      requestId,
      ip: callerOf(request),
      body: route.body ? checked(route.body, await readJson(request, share), '') : undefined,
      params,
      query: route.query
        ? (checked(route.query, { ...query }, 'query') as RouteRequest['query'])
        : query,
      rawBody: rawBodyBytes === undefined ? noBytes : await readBytes(request, rawBodyBytes, share),
      headers,
      note: (more) => Object.assign(facts, more),
    })
  }

  /** What limits count: the address a trusted proxy names, or who is connected when that is none. */
  function callerOf(request: IncomingMessage): string {
    const peer = request.socket.remoteAddress ?? ''
    const address =
      deps.trustProxyHops > 0 ? proxyAddr(request, (_, hop) => hop < deps.trustProxyHops) : peer
    return limitableAddress(address) ?? limitableAddress(peer) ?? ''
  }

  async function appOf(request: IncomingMessage): Promise<string> {
    const match = /^Bearer ([\x21-\x7e]{1,200})$/i.exec(request.headers.authorization ?? '')
    const key = match ? await keys.find(match[1] as string) : null
    if (!key) throw new Problem('unauthorized', {}, { 'www-authenticate': 'Bearer' })
    return key.app
  }

  /** Answers, whatever happens in `work`, then counts and logs the request. */
  async function serve(
    route: string,
    request: IncomingMessage,
    response: ServerResponse,
    work: Work,
  ): Promise<void> {
    const startMs = performance.now()
    const given = request.headers['x-request-id'] as string | undefined
    const requestId = given && /^[A-Za-z0-9_-]{8,64}$/.test(given) ? given : newRequestId()
    const facts: Facts = {}
    let outcome: Answer | Problem
    try {
      outcome = await work(requestId, facts)
    } catch (error) {
      outcome = asProblem(error, requestId)
      if (outcome.code === 'internal' || outcome.code === 'unavailable')
        log.requestFailed(requestId, error)
    }
    let isRepeat = false
    let answer: Answer
    if (outcome instanceof Problem) {
      const { code, members } = outcome
      facts.code = code
      for (const name of ['policy', 'rule', 'retryAfterMs']) {
        if (members[name] !== undefined) facts[name] = members[name] as string | number
      }
      isRepeat = outcome.isRepeat
      answer = problemAnswer(outcome, request.headers['accept-language'])
    } else answer = outcome
    write(response, answer, requestId)
    const durationMs = performance.now() - startMs
    const method = knownMethods.has(request.method ?? '') ? (request.method as string) : 'other'
    metrics.requests.inc({ route, method, status: String(answer.status) })
    metrics.requestSeconds.observe({ route }, durationMs / 1_000)
    if (answer.status === 429) metrics.refusalSeconds.observe({}, durationMs / 1_000)
    log.requestFinished(isRepeat, {
      requestId,
      method,
      route,
      status: answer.status,
      durationMs: Math.round(durationMs * 10) / 10,
      ...facts,
    })
  }

  return (request, response) => router.lookup(request, response)
}

const noBytes = Buffer.alloc(0)

const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Every answer of the contract; what a wrong method or a broken address hears is counted when it comes. */
function startRequestsAtZero(metrics: Metrics, routes: readonly Route[]): void {
  for (const route of routes) {
    const statuses = new Set([
      ...Object.keys(route.answers).map(Number),
      ...problemCodesOf(route).map((code) => problems[code].status),
    ])
    const answers = methodsOf(route).flatMap((method) =>
      [...statuses].map((status) => ({ method, status })),
    )
    metrics.startRequestsAtZero(route.path, answers)
  }
  const { status } = problems.not_found
  metrics.startRequestsAtZero(
    'unknown',
    [...knownMethods, 'other'].map((method) => ({ method, status })),
  )
}

/** Whoever may GET may ask for the headers alone. */
function methodsOf({ method }: Route): HTTPMethod[] {
  return method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase() as HTTPMethod]
}

function write(response: ServerResponse, answer: Answer, requestId: string): void {
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
  if (text.length === 0) delete headers['content-type']
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

const notLocal = {
  en: 'The sandbox answers only callers on its own machine, who name it localhost.',
  zh: '沙箱只回应本机以 localhost 访问的调用方。',
}

/**
 * From this very machine, not passed on by a proxy that runs on it, and not by a page whose own name
 * was made to lead here (DNS rebinding): a browser sends the name it was given as Host.
 */
function isLocal({ socket, headers }: IncomingMessage): boolean {
  const address = socket.remoteAddress ?? ''
  const isLoopback = address === '::1' || /^(::ffff:)?127\./.test(address)
  const isForwarded = forwardingHeaders.some((name) => headers[name] !== undefined)
  return isLoopback && !isForwarded && loopbackHost.test(headers.host ?? '')
}

const forwardingHeaders = ['forwarded', 'via', 'x-real-ip', 'x-forwarded-for']

const loopbackHost = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i
