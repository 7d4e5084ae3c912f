import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, expect, it, vi } from 'vitest'
import { createHttpClient, retryAfterMs } from '../../src/base/http-client.ts'
import { startHttpFarEnd } from '../providers/far-ends/http.ts'
import { beBusy } from '../tools/be-busy.ts'
import { listen } from '../tools/listen.ts'

const never = new AbortController().signal

describe('an HTTP call', () => {
  it('is not_sent when TLS never comes about, lost when the answer never comes (F15)', async () => {
    const sockets: Socket[] = []
    const silent = createServer((socket) => sockets.push(socket.on('error', () => {})))
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const { port } = silent.address() as AddressInfo
    const client = createHttpClient(1_000)
    const call = (scheme: string) =>
      client.call(
        { method: 'POST', url: `${scheme}://127.0.0.1:${port}/`, headers: {}, body: 'x' },
        never,
      )
    expect(await call('https')).toEqual({ kind: 'not_sent', reason: 'no answer in time' })
    expect(await call('http')).toEqual({ kind: 'lost', reason: 'no answer in time' })
    client.close()
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => silent.close(resolve))
  })

  it('is answered if the answer arrived while this process was busy for longer than a call may take (F23)', async () => {
    const url = await listen(
      createHttpServer((_, response) => response.end('{}', () => beBusy(1_200))),
    )
    const client = createHttpClient(1_000)
    expect(await client.call({ method: 'GET', url, headers: {} }, never)).toMatchObject({
      kind: 'answered',
    })
    client.close()
  })

  it('leaves no listener at any signal when it has ended', async () => {
    const farEnd = await startHttpFarEnd(() => ({ status: 200, body: '{}' }))
    const client = createHttpClient(30_000)
    const added = vi.spyOn(AbortSignal.prototype, 'addEventListener')
    const removed = vi.spyOn(AbortSignal.prototype, 'removeEventListener')
    const url = `http://127.0.0.1:${farEnd.port}/`
    const { signal } = new AbortController()
    expect(await client.call({ method: 'GET', url, headers: {} }, signal)).toMatchObject({
      kind: 'answered',
    })
    expect(added).toHaveBeenCalledTimes(2)
    // Calls of other tests may end meanwhile.
    const listeners = added.mock.calls.map(([type, listener]) => [type, listener])
    expect(removed.mock.calls).toEqual(expect.arrayContaining(listeners))
    client.close()
    await farEnd.close()
  })

  it('is not_sent if the name does not resolve or the port is closed', async () => {
    const client = createHttpClient(30_000)
    const call = (url: string) => client.call({ method: 'GET', url, headers: {} }, never)
    expect(await call('http://nowhere.invalid/')).toMatchObject({ kind: 'not_sent' })
    expect(await call('http://127.0.0.1:1/')).toEqual({ kind: 'not_sent', reason: 'ECONNREFUSED' })
    client.close()
    expect(await call('http://127.0.0.1:1/')).toEqual({ kind: 'not_sent', reason: 'closed' })
  })

  it('that is aborted before it has a connection is not_sent, and nothing arrives later', async () => {
    const farEnd = await startHttpFarEnd(() => ({ status: 200, body: '{}' }))
    const client = createHttpClient(30_000, { maxConnections: 1 })
    const abort = new AbortController()
    const call = (path: string, signal: AbortSignal) =>
      client.call(
        { method: 'POST', url: `http://127.0.0.1:${farEnd.port}${path}`, headers: {}, body: 'x' },
        signal,
      )
    const aborted = call('/aborted', abort.signal)
    abort.abort()
    expect(await aborted).toMatchObject({ kind: 'not_sent' })
    // It takes the only connection after the aborted call.
    expect(await call('/next', never)).toMatchObject({ kind: 'answered' })
    expect(farEnd.requests.map(({ path }) => path)).toEqual(['/next'])
    client.close()
    await farEnd.close()
  })

  it('keeps its connections for the next calls', async () => {
    const farEnd = await startHttpFarEnd(() => ({ status: 200, body: '{}' }))
    const client = createHttpClient(30_000)
    const url = `http://127.0.0.1:${farEnd.port}/`
    for (let turn = 0; turn < 10; turn++) {
      const outcome = await client.call({ method: 'POST', url, headers: {}, body: '' }, never)
      expect(outcome).toMatchObject({ kind: 'answered', status: 200, body: '{}' })
    }
    // The first connection is free again a moment after its answer.
    expect(farEnd.openConnections()).toBeLessThanOrEqual(2)
    client.close()
    await farEnd.close()
  })

  it.each([
    ['7', 7_000],
    ['0', 1_000],
    ['99999999', 86_400_000],
    ['Sun, 01 Nov 2026 00:01:00 GMT', 60_000],
    ['Sun, 01 Nov 2020 00:01:00 GMT', 1_000],
    ['soon', 5_000],
    [undefined, 5_000],
  ])('takes Retry-After %s for %i ms', (header, expected) => {
    const nowMs = Date.parse('2026-11-01T00:00:00Z')
    const headers = header === undefined ? {} : { 'retry-after': header }
    expect(retryAfterMs(headers, nowMs, 5_000)).toBe(expected)
  })

  it('has one value per header: the first one, if a server and its proxy each add Retry-After', async () => {
    const headers = { 'retry-after': ['7', '9'] }
    const farEnd = await startHttpFarEnd(() => ({ status: 429, headers, body: '' }))
    const client = createHttpClient(30_000)
    const url = `http://127.0.0.1:${farEnd.port}/`
    const outcome = await client.call({ method: 'GET', url, headers: {} }, never)
    client.close()
    await farEnd.close()
    if (outcome.kind !== 'answered') return expect.unreachable()
    expect(retryAfterMs(outcome.headers, Date.now(), 5_000)).toBe(7_000)
  })
})
