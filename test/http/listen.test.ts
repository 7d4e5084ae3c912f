import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, test } from 'vitest'
import { listen, listenAtDoors } from '../../src/http/listen.ts'
import { createHttpServer } from '../../src/http/server.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

/** A machine may have no IPv6, so nothing listens here. */
const server = {
  once: () => server,
  off: () => server,
  listen: (_at: object, done: () => void) => done(),
  address: () => ({ port: 7615 }),
} as unknown as Server

test.each([
  ['0.0.0.0', 'http://localhost:7615'],
  ['::', 'http://localhost:7615'],
  ['::1', 'http://[::1]:7615'],
  ['127.0.0.1', 'http://127.0.0.1:7615'],
  ['codes.example', 'http://codes.example:7615'],
])('HOST=%s → %s', async (host, url) => {
  expect(await listen(server, 0, host)).toBe(url)
})

test('many new connections: a turn of the event loop accepts more than one, and all of them end with the server', async () => {
  const api = createHttpServer((_, response) => void response.end())
  const url = await listenAtDoors(api, 0, '127.0.0.1')
  let turn = 0
  let next = setImmediate(function count() {
    turn += 1
    next = setImmediate(count)
  })
  releaseLater(() => clearImmediate(next))
  const perTurn = new Map<number, number>()
  api.on('connection', () => perTurn.set(turn, (perTurn.get(turn) ?? 0) + 1))
  const sockets = Array.from({ length: 64 }, () => {
    const socket = closeLater(connect(Number(new URL(url).port), '127.0.0.1'), 'destroy')
    return socket
  })
  await eventually(() => [...perTurn.values()].reduce((sum, count) => sum + count, 0) === 64)
  expect(perTurn.size).toBeLessThan(32)
  const ended = Promise.all(sockets.map((socket) => once(socket.resume(), 'end')))
  await api.stop({ quietMs: 0 })
  await ended
})

test('a port in use is refused, also if its user shares it', async () => {
  const first = createHttpServer(() => {})
  const url = await listenAtDoors(first, 0, '127.0.0.1')
  releaseLater(() => first.stop({ quietMs: 0 }))
  const port = Number(new URL(url).port)
  const second = createHttpServer(() => {})
  await expect(listenAtDoors(second, port, '127.0.0.1')).rejects.toThrow('EADDRINUSE')
  const plain = createServer().listen(0, '127.0.0.1')
  await once(plain, 'listening')
  releaseLater(() => plain.close())
  const { port: used } = plain.address() as AddressInfo
  await expect(listenAtDoors(second, used, '127.0.0.1')).rejects.toThrow('EADDRINUSE')
})
