/**
 * Every route as an express.Router, for our own app or a host's: key → body → route → answer.
 *
 * The order of refusals, each answered before the next is looked at:
 *   204, 403 a browser's own question (cors.ts); 405 the method
 *   401 the API key, 403 its origins and its kind; 403 a caller from afar, on local routes; on the receipt routes 404, 403, by the head alone
 *   400 the query
 *   413, 415, 400 the body (body.ts), 503 when too much is held
 *   409, 422 the Idempotency-Key (once-per-key.ts)
 *   422, 403 the recipient; 400 route, template and variables (send-body.ts)
 *   400, 403 the answer to a challenge (challenges.ts)
 *   429, 403 the limits (src/rules/quota.ts, src/captcha)
 * So nothing is read from a body before the key is known to be good, and nothing is counted before all else
 * passed. A path that is not ours goes on to the next handler.
 */
import express, {
  type ErrorRequestHandler,
  type Request,
  type RequestHandler,
  type Response,
  type Router,
} from 'express'
import type { ApiKey } from '../access/api-keys.ts'
import { limitableAddress } from '../base/limitable-address.ts'
import type { Log } from '../base/log.ts'
import { Problem } from '../base/problems.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Idempotency } from '../notice/idempotency.ts'
import { type BodyShare, checked, createBodyRoom, givenJson, readBytes, readJson } from './body.ts'
import { createBrowserScript } from './browser-script.ts'
import { createCors, isPreflight } from './cors.ts'
import { isLocalCaller, notLocal } from './local-caller.ts'
import { createOncePerKey } from './once-per-key.ts'
import type { Answer } from './problem.ts'
import { createReadingPage } from './reading-page.ts'
import { startRequestsAtZero } from './requests-at-zero.ts'
import { createRespond, type Facts, type Respond } from './respond.ts'
import { isKeyed, isSendRoute, methodsOf, type Route, type RouteRequest } from './route.ts'
import type { UnderWay } from './under-way.ts'

export function createRouter(deps: {
  routes: readonly Route[]
  /** Null when there is no such key. Throws Unavailable when that can't be said now. */
  findKey: (token: string) => Promise<ApiKey | null>
  /** Whether any valid publishable key lists it. Throws Unavailable when that can't be said now. */
  isListedOrigin: (origin: string) => Promise<boolean>
  idempotency: Idempotency
  metrics: Metrics
  log: Log
  /** Counts what is under way, and says when nothing new is taken. */
  underWay?: UnderWay
  /** Of bodies held at a time: those under a key, and as much again for those without. */
  maxHeldBodyBytes?: number
}): Router {
  const { routes, findKey, metrics, maxHeldBodyBytes = 16_777_216 } = deps
  // Apart, so that a stranger's slow receipts can't take the room of sends.
  const keyedBodies = createBodyRoom(maxHeldBodyBytes)
  const openBodies = createBodyRoom(maxHeldBodyBytes)
  deps.underWay?.onLateBodies(() => {
    keyedBodies.close()
    openBodies.close()
  })
  const respond = createRespond(deps)
  const oncePerKey = createOncePerKey(deps.idempotency)
  const cors = createCors(deps.isListedOrigin)
  startRequestsAtZero(metrics, routes)

  const router = express.Router({ caseSensitive: true })
  for (const path of pathsOf(routes)) {
    const atPath = routes.filter((route) => route.path === path)
    for (const route of atPath) {
      router[route.method](path, (request, response) =>
        respond(path, request, response, (requestId, facts) =>
          run(route, request, response, requestId, facts),
        ),
      )
    }
    const allow = atPath.flatMap(methodsOf).join(', ')
    const pageMethods = atPath.filter(({ access }) => access === 'page').flatMap(methodsOf)
    router.all(path, (request, response) =>
      respond(path, request, response, async () => {
        if (pageMethods.length > 0) {
          if (isPreflight(request)) return cors.preflight(request, response, pageMethods)
          await cors.admitUnknown(tokenOf(request), request, response)
          const refusal = await cors.refuseUnlisted(tokenOf(request), request, response)
          if (refusal) return refusal
        }
        return new Problem('method_not_allowed', {}, { allow })
      }),
    )
  }
  router.use('/docs', (request, response, next) => {
    if (request.method === 'GET' || request.method === 'HEAD') return next()
    const allow = 'GET, HEAD'
    void respond(
      'unknown',
      request,
      response,
      async () => new Problem('method_not_allowed', {}, { allow }),
    )
  })
  router.use('/docs', createReadingPage())
  router.use('/browser', createBrowserScript())
  router.use(answerBadPath(respond))
  return router

  async function run(
    route: Route,
    request: Request,
    response: Response,
    requestId: string,
    facts: Facts,
  ): Promise<Answer | Problem> {
    const key = isKeyed(route) ? await keyOf(route, request, response) : noKey
    if (route.access === 'local' && !isLocalCaller(request)) {
      throw new Problem('forbidden', { message: notLocal })
    }
    if (key !== noKey) Object.assign(facts, { app: key.app, keyId: key.id })
    const share = (key !== noKey ? keyedBodies : openBodies).open()
    try {
      const input = {
        key,
        requestId,
        basePath: request.baseUrl,
        ip: callerOf(request),
        params: paramsOf(request),
        headers: request.headers,
        note: (more: Facts) => Object.assign(facts, more),
        ...(await inputOf(route, key, request, share)),
      }
      return await (isSendRoute(route) ? oncePerKey(route, input) : route.run(input))
    } finally {
      share.close()
    }
  }

  async function keyOf(route: Route, request: Request, response: Response): Promise<ApiKey> {
    const token = tokenOf(request)
    let key: ApiKey | null = null
    try {
      key = token === undefined ? null : await findKey(token)
    } finally {
      if (!key) await cors.admitUnknown(token, request, response)
    }
    if (!key) throw new Problem('unauthorized', {}, { 'www-authenticate': 'Bearer' })
    cors.admit(key, request, response)
    if (key.kind === 'publishable' && route.access !== 'page') {
      throw new Problem('forbidden', { message: onlyCodes })
    }
    if (key.kind === 'operator') throw new Problem('forbidden')
    return key
  }
}

const onlyCodes = {
  en: 'A publishable key may only send and check codes.',
  zh: '可公开密钥只能用于发送和校验验证码。',
}

const tokenOf = ({ headers }: Request): string | undefined =>
  /^Bearer ([\x21-\x7e]{1,200})$/i.exec(headers.authorization ?? '')?.[1]

/** What open routes are called with. */
const noKey: ApiKey = { id: '', app: '', kind: 'secret', origins: [] }

/** Paths without a parameter first: `/v1/notices/search` is no `/v1/notices/:id`. */
function pathsOf(routes: readonly Route[]): string[] {
  const paths = [...new Set(routes.map(({ path }) => path))]
  return paths.sort((a, b) => Number(a.includes(':')) - Number(b.includes(':')))
}

/** Query and body, read and checked as the route wants them. */
async function inputOf(
  route: Route,
  key: ApiKey,
  request: Request,
  share: BodyShare,
): Promise<Pick<RouteRequest, 'query' | 'body' | 'rawBody'>> {
  const { headers } = request
  const params = paramsOf(request)
  const query = route.query ? checked(route.query, { ...request.query }, 'query') : request.query
  const head = { params, headers, query: query as RouteRequest['query'] }
  const rawBodyBytes = route.admitBody?.(head)
  const given = givenJson(request)
  const schema = (key.kind === 'publishable' && route.pageBody) || route.body
  return {
    query: head.query,
    body: schema
      ? checked(schema, given === undefined ? await readJson(request, share) : given, '')
      : undefined,
    rawBody: rawBodyBytes === undefined ? noBytes : await readBytes(request, rawBodyBytes, share),
  }
}

const noBytes = Buffer.alloc(0)

/** No path of ours has a wildcard, the only parameter that is a list. */
const paramsOf = ({ params }: Request) => params as Record<string, string>

/** What limits count: the address a trusted proxy names, or who is connected when that is none. */
function callerOf({ ip = '', socket }: Request): string {
  return limitableAddress(ip) ?? limitableAddress(socket.remoteAddress ?? '') ?? ''
}

/** A percent escape that is none, in a path of ours. */
function answerBadPath(respond: Respond): ErrorRequestHandler {
  return (error, request, response, next) => {
    if (!(error instanceof URIError)) return next(error)
    const errors = [{ path: '', message: 'the address is not valid' }]
    void respond(
      'unknown',
      request,
      response,
      async () => new Problem('invalid_request', { errors }),
    )
  }
}

/** For an app of our own: nothing comes after us. */
export function answerUnknownPath(deps: { metrics: Metrics; log: Log }): RequestHandler {
  const respond = createRespond(deps)
  return (request, response) =>
    respond('unknown', request, response, async () => new Problem('not_found'))
}
