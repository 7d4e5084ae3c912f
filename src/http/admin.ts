import type { IncomingMessage, RequestListener } from 'node:http'
import { isIP } from 'node:net'
import type { Meter } from '../base/meter.ts'
import type { Readiness } from './readiness.ts'
import { createHttpServer, type HttpServer } from './server.ts'

/**
 * The admin port of every process, never the public port. Probes and Prometheus need no key. All other paths belong to
 * the console, if this process has one.
 */
export function createAdminServer(deps: {
  metrics: Pick<Meter, 'registry'>
  /** Updates the gauges before each scrape. */
  measure: () => Promise<void>
  /** `isUseful`: true if a proxy should send requests to this process, because it can answer some of them. */
  readiness: () => Promise<Pick<Readiness, 'reasons' | 'warnings'> & { isUseful: boolean }>
  /** The reasons to replace this process; empty if there are none. */
  reasonsNotLive: () => string[]
  /** Undefined in a worker, and while an API is still starting. */
  console?: () => RequestListener | undefined
}): HttpServer {
  const { metrics, measure, readiness, reasonsNotLive } = deps
  return createHttpServer(async (request, response) => {
    const reply = (status: number, contentType: string, body: string) => {
      response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' })
      response.end(request.method === 'HEAD' ? undefined : body)
    }
    const json = (status: number, body: unknown) =>
      reply(status, 'application/json; charset=utf-8', `${JSON.stringify(body)}\n`)
    const path = request.url?.split('?')[0] ?? ''
    const console = ownPaths.includes(path) ? undefined : deps.console?.()
    if (console) return console(request, response)
    if (isPageOfAnotherName(request)) {
      return json(403, {
        status: 'refused',
        reasons: ['a browser must use the IP address of this host, or localhost'],
      })
    }
    try {
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        response.setHeader('allow', 'GET, HEAD')
        return json(405, { status: 'method not allowed' })
      }
      switch (path) {
        case '/metrics':
          await measure()
          return reply(200, metrics.registry.contentType, await metrics.registry.metrics())
        case '/livez': {
          const reasons = reasonsNotLive()
          return reasons.length === 0
            ? json(200, { status: 'alive' })
            : json(503, { status: 'stuck', reasons })
        }
        case '/readyz': {
          const { reasons, warnings } = await readiness()
          const more = warnings.length > 0 ? { warnings } : {}
          return reasons.length === 0
            ? json(200, { status: 'ready', ...more })
            : json(503, { status: 'not ready', reasons, ...more })
        }
        case '/usefulz': {
          const { reasons, isUseful } = await readiness()
          const more = reasons.length > 0 ? { reasons } : {}
          return isUseful
            ? json(200, { status: 'useful', ...more })
            : json(503, { status: 'not useful', ...more })
        }
        default:
          return json(404, { status: 'not found' })
      }
    } catch {
      json(500, { status: 'failed' })
    }
  })
}

/**
 * True for a page whose name was made to point at this address (DNS rebinding). The browser sees one site, so the page
 * could read metrics and reasons. Such a page has a name with a dot.
 *
 * Every browser sends Accept-Language, and no page can prevent that. Probes and scrapers don't send it, so they may
 * use any name. People use `localhost` or the address. docs/decisions/0010 explains why no other sign works.
 */
function isPageOfAnotherName({ headers }: IncomingMessage): boolean {
  if (headers['accept-language'] === undefined && headers.origin === undefined) return false
  const host = URL.parse(`http://${headers.host}`)?.hostname ?? ''
  return host.includes('.') && isIP(host) === 0
}

const ownPaths = ['/metrics', '/livez', '/readyz', '/usefulz']
