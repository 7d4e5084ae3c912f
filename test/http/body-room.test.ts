import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import express from 'express'
import { expect, test, vi } from 'vitest'
import { z } from 'zod'
import { createLog } from '../../src/base/log.ts'
import { readBytes } from '../../src/http/body.ts'
import { createBodyRoom } from '../../src/http/body-room.ts'
import { defineRoute } from '../../src/http/route.ts'
import { createRouter } from '../../src/http/router.ts'
import { createUnderWay } from '../../src/http/under-way.ts'
import { listen } from '../tools/listen.ts'
import { testMetrics } from '../tools/metrics.ts'
import { closeLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const maxBodyBytes = 20_000

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

function heldBytes(): number {
  collectGarbage()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** An API with one route under a key and one without, which both read a body. */
async function startDoor(
  underWay = createUnderWay({ maxBodyBytes }),
  { untilKeyIsFound = async () => {}, metrics = testMetrics() } = {},
): Promise<number> {
  const common = { method: 'post', summary: 'A test.', answers: {}, problems: [] } as const
  const router = createRouter({
    routes: [
      defineRoute({
        ...common,
        path: '/keyed',
        name: 'keyed',
        access: 'secret',
        body: z.object({ text: z.string() }),
        run: async () => ({ status: 204 }),
      }),
      defineRoute({
        ...common,
        path: '/open',
        name: 'open',
        access: 'open',
        admitBody: () => 16_384,
        run: async () => ({ status: 204 }),
      }),
    ],
    async authenticate() {
      await untilKeyIsFound()
      return { id: 'k', app: 'default', kind: 'secret', origins: [] }
    },
    isListedOrigin: async () => false,
    metrics,
    log: createLog({ level: 'silent', process: 'test' }),
    underWay,
  })
  return Number(new URL(await listen(express().use(router))).port)
}

const body = JSON.stringify({ text: 'x'.repeat(9_000) })
const head = (path: string, announcedBytes = body.length) =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\nContent-Type: application/json\r\n` +
  `Content-Length: ${announcedBytes}\r\n\r\n`

/** Sends some bytes and gathers the answer. */
async function send(
  port: number,
  bytes: string,
): Promise<{ socket: Socket; received: () => string }> {
  const socket = closeLater(connect(port, '127.0.0.1'), 'destroy')
  let received = ''
  socket.on('error', () => {})
  socket.on('data', (chunk) => {
    received += chunk
  })
  await once(socket, 'connect')
  socket.write(bytes)
  return { socket, received: () => received }
}

const statusOf = (port: number, path: string) =>
  eventually(async () => {
    const { received, socket } = await send(port, head(path) + body)
    const answer = await eventually(() => received() !== '' && received())
    socket.destroy()
    return answer
  })

test.each([
  ['/keyed', '/open'],
  ['/open', '/keyed'],
])(
  '%s: bodies that never end fill their room: whole ones are served, the oldest gets 503 to retry, and %s loses none',
  async (path, other) => {
    const port = await startDoor()
    const ofOther = await send(port, head(other) + body.slice(0, -1))
    const slow: Awaited<ReturnType<typeof send>>[] = []
    for (let count = 0; count < 5; count++) {
      slow.push(await send(port, head(path) + body.slice(0, -1)))
      expect(await statusOf(port, path)).toMatch(/^HTTP\/1.1 204/)
    }
    const refused = await eventually(() => slow[0]?.received() || false)
    expect(refused).toMatch(/^HTTP\/1.1 503/)
    expect(refused.toLowerCase()).toContain('retry-after: 2')
    expect(refused.toLowerCase()).toContain('connection: close')
    expect(refused).toContain('"code":"unavailable"')
    ofOther.socket.write(body.slice(-1))
    await eventually(() => expect(ofOther.received()).toMatch(/^HTTP\/1.1 204/))
  },
)

test('a body in chunks of one byte is held in as many bytes, not in as many buffers', async () => {
  const request = Object.assign(new PassThrough(), { headers: {} }) as unknown as IncomingMessage
  const room = createBodyRoom(1_000_000).open()
  const read = readBytes(request, 49_152, room)
  // One byte in each. A buffer that keeps a part keeps all the bytes it was cut from.
  const cutFrom = Buffer.alloc(65_536, 'x')
  const held = heldBytes()
  for (let sent = 0; sent < 49_000; sent++) request.emit('data', cutFrom.subarray(sent, sent + 1))
  expect(heldBytes() - held).toBeLessThan(500_000)
  request.emit('end')
  expect((await read).equals(Buffer.alloc(49_000, 'x'))).toBe(true)
})

test('a body in any pieces comes out as it was sent, and takes no more room than it may have', async () => {
  const sent = randomBytes(16_384)
  for (const pieceBytes of [1, 7, 1_000, 4_096, 10_000, 16_384]) {
    const request = Object.assign(new PassThrough(), { headers: {} }) as unknown as IncomingMessage
    const taken: number[] = []
    const share = {
      take: (bytes: number) => taken.push(bytes) > 0,
      onGivenUp() {},
      arrived() {},
      close() {},
    }
    const read = readBytes(request, 16_384, share)
    for (let from = 0; from < sent.length; from += pieceBytes) {
      request.emit('data', sent.subarray(from, from + pieceBytes))
    }
    request.emit('end')
    expect((await read).equals(sent)).toBe(true)
    expect(taken.reduce((sum, bytes) => sum + bytes)).toBe(16_384)
  }
})

test.each([
  ['with its head is never given up', '1234', ''],
  ['in two parts may be given up before its end', '1234', '56789'],
])('a body that arrives %s', async (_, first, second) => {
  const share = { ...createBodyRoom(1_000_000).open(), onGivenUp: vi.fn() }
  const onEnd = vi.fn()
  const server = createServer(async (request, response) => {
    // As when a key is found.
    await null
    request.on('end', onEnd)
    response.end(await readBytes(request, 100, share))
  })
  const port = Number(new URL(await listen(server)).port)
  const { socket, received } = await send(port, head('/', 4 + second.length) + first)
  if (second) {
    await vi.waitUntil(() => share.onGivenUp.mock.calls.length > 0)
    socket.write(second)
  }
  await vi.waitUntil(() => received().endsWith(`\r\n\r\n${first}${second}`))
  expect(share.onGivenUp.mock.calls.length > 0).toBe(second !== '')
  // Otherwise the connection keeps the request.
  await vi.waitUntil(() => onEnd.mock.calls.length > 0)
  socket.destroy()
})

test('a whole body keeps its room until it is done; of those that arrive, the oldest with bytes gives way', () => {
  const room = createBodyRoom(10)
  const open = () => {
    const share = { ...room.open(), stop: vi.fn() }
    share.onGivenUp(share.stop)
    return share
  }
  const [whole, first, second, last] = [open(), open(), open(), open()]
  expect([whole.take(4), second.take(3), first.take(3)]).toEqual([true, true, true])
  whole.arrived()
  expect(last.take(3)).toBe(true)
  const stops = [whole, first, second, last].map(({ stop }) => stop.mock.calls.length)
  expect(stops).toEqual([0, 0, 1, 0])
  expect(second.take(1)).toBe(false)
  expect(last.take(5)).toBe(false)
  whole.close()
  expect(last.take(7)).toBe(true)
})

test('bodies that are announced and not sent take no room', async () => {
  const port = await startDoor()
  for (let count = 0; count < 20; count++) await send(port, head('/keyed', 16_000))
  expect(await statusOf(port, '/keyed')).toMatch(/^HTTP\/1.1 204/)
})

test('the door closes: uploads that never end are given up with 503, and then it has closed', async () => {
  const underWay = createUnderWay({ bodiesMs: 100 })
  const begin = vi.spyOn(underWay, 'begin')
  const port = await startDoor(underWay)
  const slow = [
    await send(port, head('/keyed')),
    await send(port, head('/open') + body.slice(0, -1)),
  ]
  await eventually(() => begin.mock.calls.length === 2)
  await underWay.close()
  for (const { received } of slow) {
    await eventually(() => received() !== '')
    expect(received()).toMatch(/^HTTP\/1.1 503[\s\S]*"code":"unavailable"/)
    expect(received().toLowerCase()).toContain('connection: close')
  }
})

test.each([
  ['nothing of the body has arrived', ''],
  ['half the body has arrived', body.slice(0, 4_500)],
  ['the whole body has arrived', body],
])(
  '%s when the client leaves, before its key is found → the request ends as 499 and its room is free',
  async (_, sent) => {
    const metrics = testMetrics()
    const underWay = createUnderWay({ maxBodyBytes })
    const keyIsFound = Promise.withResolvers<void>()
    const looksUp = vi.fn(() => keyIsFound.promise)
    const port = await startDoor(underWay, { untilKeyIsFound: looksUp, metrics })
    const closed = vi.fn()
    for (let count = 0; count < 5; count++) {
      const { socket } = await send(port, head('/keyed') + sent)
      await eventually(() => looksUp.mock.calls.length === count + 1)
      socket.on('close', closed)
      socket.destroy()
    }
    await eventually(() => closed.mock.calls.length === 5)
    // The server sees the end in a later turn.
    await eventually(async () => {
      const { socket, received } = await send(port, 'GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n')
      await eventually(() => received() !== '')
      socket.destroy()
    })
    keyIsFound.resolve()
    await eventually(async () =>
      expect((await metrics.registry.metrics()).match(/status="499"[^}]*} (\d+)/)?.[1]).toBe('5'),
    )
    expect(await statusOf(port, '/keyed')).toMatch(/^HTTP\/1.1 204/)
    await underWay.close()
  },
)
