import { createServer, Server as HttpServer, type RequestListener } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
import { releaseLater } from './release.ts'

/**
 * A server, or one for an app, listens on a free port of loopback until the test or the file ends. Returns the origin, such
 * as `http://127.0.0.1:8080`.
 */
export async function listen(app: Server | RequestListener): Promise<string> {
  const server = typeof app === 'function' ? createServer(app) : app
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  releaseLater(
    () =>
      new Promise((resolve) => {
        server.close(resolve)
        if (server instanceof HttpServer) server.closeAllConnections()
      }),
  )
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
