/** The standalone API: the router in an Express app. */
import express, { type Express, type RequestHandler, type Router } from 'express'
import helmet from 'helmet'

export function createApp(deps: {
  router: Router
  /** The demo's router, which runs before all other routes. Production has none. */
  routerBefore?: Router | undefined
  /** Answers every other path. */
  unknownPath: RequestHandler
  /** The number of proxies in front that are trusted to name the caller's address. */
  trustProxyHops: number
}): Express {
  const app = express()
  app.disable('x-powered-by')
  app.set('trust proxy', deps.trustProxyHops)
  if (deps.routerBefore) app.use(deps.routerBefore)
  // Headers for pages only. JSON answers need none of them, and they would add a fifth to the time of a refusal.
  app.use(
    '/docs',
    helmet({
      contentSecurityPolicy: { directives: { upgradeInsecureRequests: null } },
      // HSTS covers a whole domain, so the proxy that ends TLS decides about it.
      strictTransportSecurity: false,
    }),
  )
  app.use(deps.router)
  app.use(deps.unknownPath)
  return app
}
