import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { releaseLater } from './release.ts'

export interface TcpProxy {
  readonly port: number
  /** `url` with this proxy in place of its host and port. */
  through(url: string): string
  /** Bytes pass in both directions, each `delayMs` late. Bytes that a stall delayed are sent. */
  forward(delayMs?: number): void
  /** Connections stay open, also new ones, and nothing passes. */
  stall(): void
  /** Requests pass and answers are dropped: the work is done, and the caller does not know it. */
  dropAnswers(): void
  /** Connections that are open stay open, and nothing passes any more. New connections work. */
  silence(): void
  /** New connections go to this port. */
  pointAt(port: number): void
  /** Resets every connection, and each new one until `forward`. */
  cut(): void
  /** Resets every connection once. New connections work. */
  reset(): void
  close(): Promise<void>
}

/** A network between a client and a server on loopback that fails on command. */
export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  let mode: 'forward' | 'stall' | 'dropAnswers' | 'cut' = 'forward'
  let delayMs = 0
  let port = targetPort
  const sockets = new Set<Socket>()
  const silent = new WeakSet<Socket>()
  const held: (() => void)[] = []

  const pass = (from: Socket, to: Socket, isAnswer: boolean) => {
    sockets.add(from)
    from.setNoDelay(true)
    from.on('error', () => {})
    const send = (step: () => void) => {
      if (mode === 'stall') held.push(step)
      else if (delayMs > 0) setTimeout(step, delayMs)
      else step()
    }
    from.on('data', (bytes) => {
      if (silent.has(from) || (isAnswer && mode === 'dropAnswers')) return
      send(() => to.writable && to.write(bytes))
    })
    from.on('end', () => send(() => to.end()))
    from.on('close', () => {
      sockets.delete(from)
      send(() => to.destroySoon())
    })
  }
  const server = createServer({ allowHalfOpen: true }, (client) => {
    if (mode === 'cut') return client.resetAndDestroy()
    const target = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    pass(client, target, false)
    pass(target, client, true)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const own = server.address() as AddressInfo

  const reset = () => {
    held.length = 0
    for (const socket of sockets) {
      // Node keeps the handle of a socket that is reset after its end.
      if (socket.writableEnded) socket.destroy()
      else socket.resetAndDestroy()
    }
  }
  const proxy: TcpProxy = {
    port: own.port,
    through(url) {
      const target = new URL(url)
      target.hostname = '127.0.0.1'
      target.port = String(own.port)
      return target.href
    },
    forward(newDelayMs = 0) {
      mode = 'forward'
      delayMs = newDelayMs
      for (const step of held.splice(0)) step()
    },
    stall: () => {
      mode = 'stall'
    },
    dropAnswers: () => {
      mode = 'dropAnswers'
    },
    silence() {
      for (const socket of sockets) silent.add(socket)
    },
    pointAt(newPort) {
      port = newPort
    },
    cut() {
      mode = 'cut'
      reset()
    },
    reset,
    async close() {
      reset()
      if (!server.listening) return
      server.close()
      await once(server, 'close')
    },
  }
  releaseLater(proxy.close)
  return proxy
}
