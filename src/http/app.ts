/**
 * The Express application: parse, authenticate, run a route, answer, and nothing else.
 *
 * The order of refusals: unknown path (404), method (405), key (401), body (415, 413, 400). Nothing is
 * read from a body before the key is known to be good, and nothing is counted before all of it passed.
 */
import { isUtf8 } from 'node:buffer'
import express, { type Express, type Request, type Response } from 'express'
import type { ZodError } from 'zod'
import type { ApiKeys } from '../access/api-keys.ts'
import { isId, newId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { type FieldError, Problem, Unavailable } from '../base/problems.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { limitableAddress } from './limitable-address.ts'
import { type Answer, problemAnswer } from './problem.ts'
import type { Route, RouteRequest } from './route.ts'

const maxBodyBytes = 16_384

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

  const parseJson = express.json({
    limit: maxBodyBytes,
    // A compressed body can be a bomb, and no caller needs one.
    inflate: false,
    // `null` and `1` are refused by the schema, with a better message.
    strict: false,
    type: 'application/json',
    verify(_request, _response, body, charset) {
      if (charset !== 'utf-8') throw otherCharset
      if (body.length === 0) throw emptyBody
      if (!isUtf8(body)) throw invalidUtf8
    },
  })

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
    const body = route.body ? parse(route.body, await readBody(request, response), '') : undefined
    const query = route.query ? parse(route.query, request.query, 'query') : request.query
    const routeRequest: RouteRequest = {
      app,
      requestId: response.locals.requestId,
      ip: callerOf(request),
      body,
      params: request.params as Record<string, string>,
      query: query as Record<string, unknown>,
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

  async function readBody(request: Request, response: Response): Promise<unknown> {
    // The parser would read an over-long body to its end before it says so.
    const announcedBytes = Number(request.headers['content-length'])
    if (announcedBytes > maxBodyBytes && request.is('application/json')) {
      throw new Problem('payload_too_large')
    }
    return new Promise((resolve, reject) => {
      parseJson(request, response, (error?: unknown) => {
        if (error) reject(bodyProblem(error))
        else if (request.body === undefined) {
          const hasBody =
            request.headers['transfer-encoding'] !== undefined ||
            Number(request.headers['content-length']) > 0
          reject(
            hasBody
              ? new Problem('unsupported_media_type')
              : fieldProblem([{ path: '', message: missingBody }]),
          )
        } else resolve(request.body)
      })
    })
  }

  /** Answers, whatever happens in `work`, then counts and logs the request. */
  async function serve(
    route: string,
    request: Request,
    response: Response,
    work: () => Promise<Answer>,
  ): Promise<void> {
    const startMs = performance.now()
    const given = request.headers['x-request-id'] as string | undefined
    const requestId =
      given && (isId(given) || /^[A-Za-z0-9_-]{8,64}$/.test(given)) ? given : newId()
    const facts: Record<string, string | number> = {}
    response.locals.requestId = requestId
    response.locals.facts = facts
    let answer: Answer
    try {
      answer = await work()
    } catch (error) {
      const problem = asProblem(error, requestId)
      if (problem.code === 'internal' || problem.code === 'unavailable')
        log.requestFailed(requestId, error)
      facts.code = problem.code
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
    log.requestFinished({
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

const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

const missingBody = 'the body is missing'

const bodyError = (status: number, type: string) => Object.assign(new Error(type), { status, type })
const otherCharset = bodyError(415, 'charset.unsupported')
const emptyBody = bodyError(400, 'body.missing')
const invalidUtf8 = bodyError(400, 'encoding.invalid')

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
  const text = answer.body === undefined ? '' : JSON.stringify(answer.body)
  if (text === '') delete headers['content-type']
  else headers['content-length'] = Buffer.byteLength(text)
  response.writeHead(answer.status, headers).end(text)
}

function parse(schema: NonNullable<Route['body']>, value: unknown, place: string): unknown {
  const hidden = hiddenMember(value)
  if (hidden) throw fieldProblem([{ path: hidden, message: 'unknown field' }])
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw fieldProblem(fieldErrors(parsed.error, place))
}

/** The path of a `__proto__`, which a schema of free names would leave out without a word. */
function hiddenMember(value: unknown, depth = 0): string | undefined {
  if (typeof value !== 'object' || value === null || depth > 2) return undefined
  if (Object.hasOwn(value, '__proto__')) return '__proto__'
  for (const [name, inner] of Object.entries(value)) {
    const hidden = hiddenMember(inner, depth + 1)
    if (hidden) return `${name}.${hidden}`.slice(0, 100)
  }
  return undefined
}

function fieldErrors(error: ZodError, place: string): FieldError[] {
  return error.issues.flatMap((issue) => {
    const at = [place, ...issue.path.map(String)].filter(Boolean)
    if (issue.code === 'unrecognized_keys') {
      return issue.keys.map((key) => ({
        path: [...at, key].join('.').slice(0, 100),
        message: 'unknown field',
      }))
    }
    return [{ path: at.join('.').slice(0, 100), message: issue.message }]
  })
}

function fieldProblem(errors: readonly FieldError[]): Problem {
  return new Problem('invalid_request', { errors: errors.slice(0, 20) })
}

/** What express.json found wrong, in our words. */
function bodyProblem(error: unknown): Problem {
  const { status, type } = error as { status?: number; type?: string }
  if (status === 413) return new Problem('payload_too_large')
  if (status === 415) return new Problem('unsupported_media_type')
  return fieldProblem([{ path: '', message: bodyMessages[type ?? ''] ?? 'the body is not JSON' }])
}

const bodyMessages: Readonly<Record<string, string>> = {
  'encoding.invalid': 'the body is not UTF-8',
  'request.aborted': 'the body ended early',
  'body.missing': missingBody,
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
