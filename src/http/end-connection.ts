import type { Socket } from 'node:net'

/** A client that still sends gets this time to read its answer. */
const lingerMs = 2_000

/**
 * Ends a connection whose request is not complete. If both directions were closed now, the next bytes of the client would
 * cause a reset. That discards an answer which the client has not read. So its bytes are dropped for a while (RFC 9112,
 * 9.6).
 */
export function endConnection(socket: Socket, lastBytes = ''): void {
  socket.end(lastBytes)
  // In place of the parser, which would report a fault of each.
  socket
    .removeAllListeners('data')
    .on('data', () => {})
    .resume()
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.once('close', () => clearTimeout(timer))
}
