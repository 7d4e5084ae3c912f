import { createServer, type RequestListener, type Server } from 'node:http'
import { answerClientError } from './client-error.ts'

/** How long a caller may take. Node looks for late ones only every `checkEveryMs`, by default every 30 s. */
const defaultPatience = { headersMs: 10_000, requestMs: 15_000, checkEveryMs: 1_000 }

/** The server of the public port. A proxy's idle connections are kept for longer than its own time-out. */
export function createPublicServer(app: RequestListener, patience = defaultPatience): Server {
  const server = createServer(
    {
      headersTimeout: patience.headersMs,
      requestTimeout: patience.requestMs,
      connectionsCheckingInterval: patience.checkEveryMs,
      keepAliveTimeout: 65_000,
    },
    app,
  )
  server.on('clientError', answerClientError)
  return server
}
