/** The standalone API: the router in an Express app of our own. */
import express, { type Express, type RequestHandler, type Router } from 'express'
import helmet from 'helmet'

export function createApp(deps: {
  router: Router
  /** Asked first. */
  beside?: Router | undefined
  /** Answers a path that Postern does not have. */
  unknownPath: RequestHandler
  /** How many proxies in front may be believed about the caller's address. */
  trustProxyHops: number
}): Express {
  const app = express()
  app.disable('x-powered-by')
  app.set('trust proxy', deps.trustProxyHops)
  if (deps.beside) app.use(deps.beside)
  // For pages. Answers in JSON need none of it, and setting its headers costs a fifth of a refusal.
  app.use(
    '/docs',
    helmet({
      contentSecurityPolicy: { directives: { upgradeInsecureRequests: null } },
      // For the proxy that ends TLS to say, and for its whole domain.
      strictTransportSecurity: false,
    }),
  )
  app.use(deps.router)
  app.use(deps.unknownPath)
  return app
}
