import type { Server } from 'node:http'
import { type AddressInfo, isIPv6, type ListenOptions, type Server as NetServer } from 'node:net'
import type { HttpServer } from './server.ts'

/** Starts listening and returns the address. Port 0 means any free port. */
export async function listen(server: Server, port: number, host: string): Promise<string> {
  await open(server, { port, host })
  return addressOf(server, host)
}

/**
 * Node accepts one connection of a listening socket per turn of the event loop. Under load a turn takes tens of
 * milliseconds. New connections would wait for seconds, and then for nothing: their clients have gone. So the port of
 * the API has this many listening sockets, among which the system shares out new connections. With turns of 20 ms they
 * accept 6,400 connections a second.
 */
const doors = 128
/** Connections that wait at one listening socket. More would be accepted after their clients have gone. */
const backlog = 64

/** Like `listen`, for a port with many new connections. */
export async function listenAtDoors(
  server: HttpServer,
  port: number,
  host: string,
): Promise<string> {
  const shared = { host, backlog, reusePort: true }
  // Sockets that share a port do not notice another process that shares it too.
  if (port !== 0) await refuseUsed(server, { port, host })
  try {
    await open(server, { ...shared, port })
  } catch (error) {
    // Not every system can share a port.
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') throw error
    return listen(server, port, host)
  }
  const own = (server.address() as AddressInfo).port
  for (let count = 1; count < doors; count++) {
    await open(server.openDoor(), { ...shared, port: own })
  }
  return addressOf(server, host)
}

/** Rejects if the port is in use. */
async function refuseUsed(server: HttpServer, at: ListenOptions): Promise<void> {
  await open(server, at)
  await new Promise<void>((resolve) => server.close(() => resolve()))
}

async function open(server: NetServer | Server, at: ListenOptions): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(at, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function addressOf(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo
  const name = ['0.0.0.0', '::'].includes(host) ? 'localhost' : host
  return `http://${isIPv6(name) ? `[${name}]` : name}:${port}`
}
