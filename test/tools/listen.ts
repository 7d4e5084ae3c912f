import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { releaseLater } from './release.ts'

/** Listens on a free port of loopback until the test or the file ends. Returns the origin, such as `http://127.0.0.1:8080`. */
export async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  releaseLater(
    () =>
      new Promise((resolve) => {
        server.close(resolve)
        server.closeAllConnections()
      }),
  )
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
