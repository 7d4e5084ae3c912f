/** The stop of a server, as each kind of connection sees it. */
import { once } from 'node:events'
import { IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { queryObjects } from 'node:v8'
import type { Request, Response } from 'express'
import { expect, test } from 'vitest'
import { createLog } from '../../src/base/log.ts'
import { createRespond, type RouteResult } from '../../src/http/respond.ts'
import { createHttpServer } from '../../src/http/server.ts'
import { createUnderWay } from '../../src/http/under-way.ts'
import { listen } from '../tools/listen.ts'
import { testMetrics } from '../tools/metrics.ts'
import { closeLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

interface Client {
  socket: Socket
  /** All that came back so far. */
  received(): string
  /** The end of the connection: 'open', 'end' (a FIN), or the code of an error. */
  ending(): string
}

async function openServer(app: RequestListener) {
  const server = createHttpServer(app)
  const port = Number(new URL(await listen(server)).port)
  async function open(bytes = ''): Promise<Client> {
    const socket = closeLater(connect({ port, host: '127.0.0.1', allowHalfOpen: true }), 'destroy')
    let received = ''
    let ending = 'open'
    socket.on('data', (chunk) => {
      received += chunk
    })
    socket.on('error', ({ code = 'error' }: NodeJS.ErrnoException) => {
      ending = code
    })
    socket.on('end', () => {
      ending = 'end'
    })
    await once(socket, 'connect')
    if (bytes) socket.write(bytes)
    return { socket, received: () => received, ending: () => ending }
  }
  return { server, open }
}

const get = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
const answersIn = (text: string) => text.match(/HTTP\/1\.1 200/g)?.length ?? 0
/** Closes its side, like a client that has seen the end. */
const finish = ({ socket }: Client) => socket.end()

/** A server whose answers the test gives. */
async function openSlow() {
  const waiting: ServerResponse[] = []
  const opened = await openServer((_request, response) => void waiting.push(response))
  const untilWaiting = (count: number) => eventually(() => waiting.length === count)
  return { ...opened, waiting, untilWaiting }
}

test('a running request → its answer has Connection: close, and the connection ends with a FIN', async () => {
  const { server, open, waiting, untilWaiting } = await openSlow()
  const client = await open(get)
  await untilWaiting(1)
  const stopped = server.stop({ quietMs: 20_000 })
  waiting[0]?.end('done')
  await eventually(() => client.ending() === 'end')
  expect(client.received()).toMatch(/^HTTP\/1\.1 200/)
  expect(client.received().toLowerCase()).toContain('\r\nconnection: close\r\n')
  expect(client.received()).toContain('done')
  finish(client)
  await stopped
})

test('requests behind each other → all are answered, only the last has Connection: close, later requests are not carried out', async () => {
  const { server, open, waiting, untilWaiting } = await openSlow()
  const client = await open(get + get)
  await untilWaiting(2)
  const stopped = server.stop({ quietMs: 20_000 })
  client.socket.write(get)
  await eventually(() => client.socket.bytesWritten === 3 * get.length)
  for (const response of waiting) response.end('done')
  await eventually(() => client.ending() === 'end')
  expect(answersIn(client.received())).toBe(2)
  const heads = client.received().toLowerCase().split('http/1.1 200').slice(1)
  expect(heads.map((head) => head.includes('connection: close'))).toEqual([false, true])
  expect(waiting).toHaveLength(2)
  finish(client)
  await stopped
})

test('a connection in use → its next request is answered, as the last one', async () => {
  const { server, open } = await openServer((_request, response) => void response.end('done'))
  const client = await open(get)
  await eventually(() => answersIn(client.received()) === 1)
  expect(client.received().toLowerCase()).not.toContain('connection: close')
  const stopped = server.stop({ quietMs: 20_000 })
  client.socket.write(get)
  await eventually(() => client.ending() === 'end')
  expect(answersIn(client.received())).toBe(2)
  expect(client.received().toLowerCase()).toContain('connection: close')
  finish(client)
  await stopped
})

test('a quiet connection → ends with a FIN; a request that meets it is not carried out, and no reset', async () => {
  let served = 0
  const { server, open } = await openServer((_request, response) => {
    served += 1
    response.end('done')
  })
  const client = await open(get)
  await eventually(() => answersIn(client.received()) === 1)
  const stopped = server.stop({ quietMs: 200 })
  await eventually(() => client.ending() === 'end')
  client.socket.write(get)
  finish(client)
  await stopped
  await eventually(() => client.socket.closed)
  expect(client.ending()).toBe('end')
  expect(served).toBe(1)
})

test('a connection that was used a moment ago → is kept for quietMs', async () => {
  const { server, open } = await openServer((_request, response) => void response.end('done'))
  const client = await open(get)
  await eventually(() => answersIn(client.received()) === 1)
  const answeredMs = performance.now()
  const stopped = server.stop({ quietMs: 300 })
  await eventually(() => client.ending() === 'end')
  expect(performance.now() - answeredMs).toBeGreaterThan(250)
  finish(client)
  await stopped
})

test('a request that arrives in pieces over the stop is answered', async () => {
  const { server, open } = await openServer((_request, response) => void response.end('done'))
  const client = await open(get.slice(0, 10))
  await eventually(() => client.socket.bytesWritten === 10)
  const stopped = server.stop({ quietMs: 20_000 })
  client.socket.write(get.slice(10))
  await eventually(() => client.ending() === 'end')
  expect(answersIn(client.received())).toBe(1)
  finish(client)
  await stopped
})

test('drainMs: new connections are accepted and answered with Connection: close until it has passed', async () => {
  const { server, open } = await openServer((_request, response) => void response.end('done'))
  const stopped = server.stop({ drainMs: 3_000, quietMs: 200 })
  const client = await open(get)
  await eventually(() => client.ending() === 'end')
  expect(answersIn(client.received())).toBe(1)
  expect(client.received().toLowerCase()).toContain('connection: close')
  finish(client)
  await stopped
  expect(server.listening).toBe(false)
})

test('I21: 50 connections that stay open after their answers keep no request in memory', async () => {
  const { server, open } = await openServer((request, response) => {
    request.resume().on('end', () => response.end('done'))
  })
  const count = () => queryObjects(IncomingMessage, { format: 'count' }) as unknown as number
  const before = count()
  const clients = await Promise.all(Array.from({ length: 50 }, () => open(get)))
  await eventually(() => {
    for (const client of clients) expect(client.received()).toContain('done')
    expect(count() - before).toBeLessThan(10)
  })
  for (const client of clients) {
    expect(client.ending()).toBe('open')
    finish(client)
  }
  await server.stop({ quietMs: 0 })
})

test('requests that are refused while Postern closes do not end the wait for those under way', async () => {
  const underWay = createUnderWay()
  const respond = createRespond({
    metrics: testMetrics(),
    log: createLog({ level: 'silent', process: 'api' }),
    underWay,
  })
  async function statusOf(work: () => Promise<RouteResult>): Promise<number | undefined> {
    let answered: number | undefined
    const response = {
      writeHead(status: number) {
        answered = status
        return { end() {} }
      },
    }
    const request = { headers: {}, method: 'POST' }
    await respond('/v1/notices', request as Request, response as unknown as Response, work)
    return answered
  }
  const work = Promise.withResolvers<RouteResult>()
  const underWayStatus = statusOf(() => work.promise)
  let isClosed = false
  const closing = underWay.close().then(() => {
    isClosed = true
  })
  expect(await statusOf(async () => ({ status: 202 }))).toBe(503)
  await turn()
  expect(isClosed).toBe(false)
  work.resolve({ status: 202 })
  expect(await underWayStatus).toBe(202)
  await closing
})
