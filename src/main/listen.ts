import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Listens; resolves with the address. A port of 0 means any free one. */
export async function listen(server: Server, port: number, host: string): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  const { port: actualPort } = server.address() as AddressInfo
  return `http://${host === '0.0.0.0' ? 'localhost' : host}:${actualPort}`
}

/** How long requests under way may take to end once nothing new is taken. */
const lastRequestsMs = 5_000

/** Takes no more connections and resolves when the requests under way have ended. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const cutOff = setTimeout(() => server.closeAllConnections(), lastRequestsMs)
    server.close(() => {
      clearTimeout(cutOff)
      resolve()
    })
    server.closeIdleConnections()
  })
}
