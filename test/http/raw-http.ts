import { once } from 'node:events'
import { connect } from 'node:net'

/**
 * Sends raw bytes to an HTTP server, then closes its own side if asked. Returns all bytes that came until the server
 * closed the connection.
 */
export async function rawHttp(
  url: string,
  bytes: string | Buffer,
  options: { thenEnd?: boolean } = {},
): Promise<{ status: number; head: string; body: string }> {
  const { port } = new URL(url)
  const socket = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true })
  socket.setTimeout(10_000, () => socket.destroy())
  // A server that has answered may reset the connection while bytes are still sent.
  socket.on('error', () => {})
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  await once(socket, 'connect')
  const ended = once(socket, 'end').catch(() => {})
  if (options.thenEnd) socket.end(bytes)
  else socket.write(bytes)
  await Promise.race([ended, once(socket, 'close')])
  socket.destroy()
  const [head = '', ...body] = Buffer.concat(chunks).toString().split('\r\n\r\n')
  return { status: Number(head.split(' ')[1]), head, body: body.join('\r\n\r\n') }
}
