/**
 * Every route as an express.Router, for the standalone API or a host app: key → body → route → answer.
 *
 * The order of refusals. Each check comes after all checks above it have passed:
 *   204, 403 a preflight (cors.ts); 405 the method;
 *   401 the API key (src/access/api-keys.ts), 403 its origins and its kind; 403 a remote caller on local routes;
 *     404, 403 the head of a receipt;
 *   400 the query;
 *   413, 415, 400 the body (body.ts), 503 if the room for bodies is full; 503 without a turn (under-way.ts). In the
 *     standalone API, early-refusal.ts sends the last one after the key, and no body is read.
 * Then, below HTTP (src/captcha, src/notice):
 *   422, 403 the recipient; 400 route, template and variables (src/notice/message.ts);
 *   409, 422 the Idempotency-Key (src/notice/once-per-key.ts);
 *   400, 403 the answer to a challenge (src/captcha/challenges.ts);
 *   429, 403 the limits (src/rules/quota.ts).
 * So no body is read before the key is known to be valid, and nothing is counted before these checks pass. Two
 * exceptions: a mail domain without a server (422) is found after the limits, and the counts are given back; and a
 * page's 429 comes before its Idempotency-Key is read. Other paths go on to the next handler.
 */
import type { IncomingMessage } from 'node:http'
import express, {
  type ErrorRequestHandler,
  type Request,
  type RequestHandler,
  type Response,
  type Router,
} from 'express'
import type { Log } from '../base/log.ts'
import { Problem } from '../base/problems.ts'
import { inSpan } from '../base/traces.ts'
import type { Caller } from '../rules/caller.ts'
import { ClientGone, checked, givenJson, isGone, readBytes, readJson } from './body.ts'
import type { BodyShare } from './body-room.ts'
import { createBrowserScript } from './browser-script.ts'
import { createCors, isPreflight } from './cors.ts'
import { isLocalCaller } from './local-caller.ts'
import type { HttpMetrics } from './metrics.ts'
import { createPluginRouter, type NamedRouter } from './plugin-router.ts'
import { invalid } from './problem.ts'
import { createReadingPage } from './reading-page.ts'
import { addressOf, type Call, type Facts, startRequestSpan } from './request-record.ts'
import { startRequestsAtZero } from './requests-at-zero.ts'
import { createRespond, type Respond, type RouteResult } from './respond.ts'
import { isKeyed, type Key, methodsOf, type Route, type RouteRequest } from './route.ts'
import type { UnderWay } from './under-way.ts'

export function createRouter(deps: {
  routes: readonly Route[]
  /** Null for an unknown or revoked key. Throws Unavailable if the state of the key is not known now. */
  authenticate: (token: string) => Promise<Key | null>
  /** True if a valid publishable key lists it. Throws Unavailable if that is not known now. */
  isListedOrigin: (origin: string) => Promise<boolean>
  metrics: HttpMetrics
  log: Log
  /** Counts requests under way, and refuses new ones while the process stops. */
  underWay: UnderWay
  /** Routers of plugins, in this order, after all paths of Postern. */
  pluginRouters?: readonly NamedRouter[]
  /** Traces of pages are continued, as traces of servers are. */
  takesPageTraces?: boolean
}): Router {
  const { routes, authenticate, metrics, underWay, takesPageTraces = false } = deps
  const respond = createRespond(deps)
  const cors = createCors(deps.isListedOrigin, takesPageTraces)
  startRequestsAtZero(metrics, routes)

  const router = express.Router({ caseSensitive: true })
  // A slash behind a file would change what relative addresses in it mean, such as the server of the OpenAPI document.
  const files = express.Router({ caseSensitive: true, strict: true })
  for (const path of pathsOf(routes)) {
    const atPath = routes.filter((route) => route.path === path)
    const owner = path.endsWith('.json') ? files : router
    for (const route of atPath) {
      const methods = methodsOf(route)
      owner[route.method](path, (request, response, next) => {
        // Express gives HEAD to every route of GET.
        if (!methods.includes(request.method)) return next()
        return respond(path, request, response, (call) => run(route, request, response, call))
      })
    }
    const allow = atPath.flatMap(methodsOf).join(', ')
    const pageMethods = atPath.filter(({ access }) => access === 'page').flatMap(methodsOf)
    owner.all(path, (request, response) =>
      respond(path, request, response, async (call) => {
        if (pageMethods.length > 0) {
          if (isPreflight(request)) {
            const answer = await cors.preflight(request, response, pageMethods)
            if (!(answer instanceof Problem)) call.isOfListedPage = true
            return answer
          }
          const refusal = await cors.refuseUnlisted(tokenOf(request), request, response)
          if (refusal) return refusal
        }
        return new Problem('method_not_allowed', {}, { allow })
      }),
    )
  }
  router.use(files)
  const onlyReads: RequestHandler = (request, response) =>
    respond('unknown', request, response, async () => {
      return new Problem('method_not_allowed', {}, { allow: 'GET, HEAD' })
    })
  router.use('/docs', (request, response, next) => {
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    return isRead ? next() : onlyReads(request, response, next)
  })
  // These files are large, and strangers can request them (I21).
  router.use(['/docs', '/browser'], async (request, _response, next) => {
    await underWay.giveWay({ app: '', caller: addressOf(request) })
    next()
  })
  router.use('/docs', createReadingPage())
  router.use('/browser', createBrowserScript(onlyReads))
  router.use(answerBadPath(respond))
  for (const one of deps.pluginRouters ?? []) {
    router.use(createPluginRouter(one, { ...deps, respond }))
  }
  return router

  async function run(
    route: Route,
    request: Request,
    response: Response,
    call: Call,
  ): Promise<RouteResult> {
    const { facts } = call
    const key = isKeyed(route) ? await keyOf(route, request, response) : noKey
    if (route.access === 'local' && !isLocalCaller(request)) {
      throw new Problem('forbidden', {}, {}, 'notLocal')
    }
    if (key !== noKey) {
      Object.assign(facts, { app: key.app, keyId: key.id })
      const isTrusted = key.kind === 'secret' || takesPageTraces
      call.span = startRequestSpan(route.path, request, call.startMs, isTrusted)
    }
    const share = underWay.bodies[key === noKey ? 'open' : 'keyed'].open()
    try {
      const caller = callerOf(key, request)
      const input = {
        caller,
        basePath: request.baseUrl,
        params: paramsOf(request),
        headers: request.headers,
        note: (more: Facts) => Object.assign(facts, more),
        admit: () => {
          call.isKnown = true
        },
        ...(await inputOf(route, key, request, share)),
      }
      const work = async () => {
        if (isGone(request)) throw new ClientGone()
        return inSpan(call.span, () => route.run(input))
      }
      if (key === noKey) return await work()
      const sharer = { app: key.app, caller: caller.ip, waitedMs: call.waitedMs }
      return await underWay.inTurn(route.isRead ? 'reads' : 'work', sharer, work)
    } finally {
      share.close()
    }
  }

  async function keyOf(route: Route, request: Request, response: Response): Promise<Key> {
    const token = tokenOf(request)
    let key: Key | null = null
    try {
      key = token === undefined ? null : await authenticate(token)
    } finally {
      if (!key) await cors.admitUnknown(token, request, response)
    }
    if (!key) throw new Problem('unauthorized', {}, { 'www-authenticate': 'Bearer' })
    cors.admit(key, request, response)
    if (key.kind === 'publishable' && route.access !== 'page') {
      throw new Problem('forbidden', {}, {}, 'onlyCodes')
    }
    if (key.kind === 'operator') throw new Problem('forbidden')
    return key
  }
}

export const tokenOf = ({ headers }: IncomingMessage): string | undefined =>
  /^Bearer +([\x21-\x7e]{1,200})$/i.exec(headers.authorization ?? '')?.[1]

/** The key in calls of open routes. */
const noKey: Key = { id: '', app: '', kind: 'secret', origins: [] }

/** Paths without a parameter come first: `/v1/notices/search` must not match `/v1/notices/:id`. */
function pathsOf(routes: readonly Route[]): string[] {
  const paths = [...new Set(routes.map(({ path }) => path))]
  return paths.sort((a, b) => Number(a.includes(':')) - Number(b.includes(':')))
}

/** Reads query and body and checks them with the schemas of the route. */
async function inputOf(
  route: Route,
  key: Key,
  request: Request,
  share: BodyShare,
): Promise<Pick<RouteRequest, 'query' | 'body' | 'rawBody'>> {
  const { headers } = request
  const params = paramsOf(request)
  const query = route.query ? checked(route.query, { ...request.query }, 'query') : request.query
  const head = { params, headers, query: query as RouteRequest['query'] }
  const rawBodyBytes = route.admitBody?.(head)
  const given = givenJson(request)
  const json = route.body && (given === undefined ? await readJson(request, share) : given)
  const form = route.otherForm?.isMeant(json) ? route.otherForm : route
  const schema = (key.kind === 'publishable' && form.pageBody) || form.body
  return {
    query: head.query,
    body: schema ? checked(schema, json, '') : undefined,
    rawBody: rawBodyBytes === undefined ? noBytes : await readBytes(request, rawBodyBytes, share),
  }
}

const noBytes = Buffer.alloc(0)

/** No path has a wildcard, so no parameter is a list. */
const paramsOf = ({ params }: Request) => params as Record<string, string>

function callerOf({ id: keyId, app, kind, origins }: Key, request: Request): Caller {
  return { app, keyId, ip: addressOf(request), isPage: kind === 'publishable', origins }
}

/** Answers a broken percent escape in a path. */
function answerBadPath(respond: Respond): ErrorRequestHandler {
  return (error, request, response, next) => {
    if (!(error instanceof URIError)) return next(error)
    void respond('unknown', request, response, async () => invalid('', 'badAddress'))
  }
}

/** For the standalone API: the last handler. */
export function answerUnknownPath(deps: {
  metrics: HttpMetrics
  log: Log
  underWay: UnderWay
}): RequestHandler {
  const respond = createRespond(deps)
  return (request, response) =>
    respond('unknown', request, response, async () => new Problem('not_found'))
}
