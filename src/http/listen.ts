import type { Server } from 'node:http'
import { type AddressInfo, isIPv6 } from 'node:net'

/** Starts listening and returns the address. Port 0 means any free port. */
export async function listen(server: Server, port: number, host: string): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  const { port: actualPort } = server.address() as AddressInfo
  const name = ['0.0.0.0', '::'].includes(host) ? 'localhost' : host
  return `http://${isIPv6(name) ? `[${name}]` : name}:${actualPort}`
}
