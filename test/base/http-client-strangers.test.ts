import { createServer } from 'node:http'
import { describe, expect, it } from 'vitest'
import { createHttpClient } from '../../src/base/http-client.ts'
import { listen } from '../tools/listen.ts'
import {
  http,
  httpHeader,
  httpInterim,
  type Misbehaviour,
  type Protocol,
  startMisbehavingServer,
} from '../tools/misbehaving-server.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const never = new AbortController().signal

async function callTo(protocol: Protocol, misbehaviour: Misbehaviour, timeoutMs = 60_000) {
  const server = await startMisbehavingServer(protocol, misbehaviour)
  const client = createHttpClient(timeoutMs)
  releaseLater(client.close)
  const url = `http://127.0.0.1:${server.port}/`
  const outcome = await client.call({ method: 'POST', url, headers: {}, body: 'x' }, never)
  return { server, outcome }
}

describe('an HTTP call to a far end that misbehaves', () => {
  it.each<[string, Misbehaviour, Protocol, string]>([
    ['a body without end', 'endless', http, 'answer too large'],
    ['a body in parts of one byte without end', 'crumbs', http, 'answer too large'],
    ['interim answers without end', 'endless', httpInterim, 'too many interim answers'],
    ['a header without end', 'endless', httpHeader, 'UND_ERR_HEADERS_OVERFLOW'],
    ['an end before the answer', 'half closes', http, 'UND_ERR_SOCKET'],
  ])(
    '%s → lost long before its time limit, and the connection ends',
    async (_, misbehaviour, protocol, reason) => {
      const { outcome, server } = await callTo(protocol, misbehaviour)
      expect(outcome).toEqual({ kind: 'lost', reason })
      await eventually(() => server.connections.open === 0)
    },
  )

  it.each<Misbehaviour>(['never reads', 'lies about the length'])(
    '%s → lost at its time limit',
    async (misbehaviour) => {
      const { outcome } = await callTo(http, misbehaviour, 300)
      expect(outcome).toEqual({ kind: 'lost', reason: 'no answer in time' })
    },
  )

  it('more than its length announces → the announced bytes, and nothing of the rest answers the next call', async () => {
    const server = await startMisbehavingServer(http, 'sends more than it announces')
    const client = createHttpClient(20_000)
    releaseLater(client.close)
    const call = { method: 'GET', url: `http://127.0.0.1:${server.port}/`, headers: {} } as const
    for (const nth of [1, 2, 3]) {
      expect(await client.call(call, never)).toMatchObject({ kind: 'answered', body: '{"' })
      // The rest ends the connection.
      await eventually(() => server.connections.open === 0)
      expect(server.connections.total).toBe(nth)
    }
  })

  it('a good answer, one byte at a time → answered', async () => {
    const { outcome } = await callTo(http, 'slow')
    expect(outcome).toMatchObject({ kind: 'answered', status: 200, body: '{"id":"m-1"}' })
  })

  it('some interim answers before the answer → answered, with the answer’s own status and headers', async () => {
    const hint = 'HTTP/1.1 103 Early Hints\r\nretry-after: 9\r\n\r\n'
    const answer = 'HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\n{}'
    const protocol = { ...http, answer: () => Buffer.from(hint.repeat(3) + answer) }
    const { outcome } = await callTo(protocol, 'slow')
    expect(outcome).toEqual({
      kind: 'answered',
      status: 202,
      headers: { 'content-length': '2' },
      body: '{}',
    })
  })

  it('parts of a byte are counted as more, so an answer that waits after 20,000 of them is not kept', async () => {
    const [begin, crumb] = http.crumbs
    const some = Buffer.concat([begin, ...Array.from({ length: 20_000 }, () => crumb)])
    const { outcome } = await callTo({ ...http, lie: some }, 'lies about the length', 20_000)
    expect(outcome).toEqual({ kind: 'lost', reason: 'answer too large' })
  })

  it('answers after the time limit of the connection, within that of answers → answered', async () => {
    const server = await listen(
      createServer((_, response) => setTimeout(() => response.end('{}'), 600)),
    )
    const client = createHttpClient(300, { answerMs: 30_000 })
    releaseLater(client.close)
    const call = { method: 'POST', url: server, headers: {}, body: 'x' } as const
    expect(await client.call(call, never)).toMatchObject({ kind: 'answered', body: '{}' })
  })

  it('a body of many parts below the limit → whole', async () => {
    const text = Array.from({ length: 2_000 }, (_, n) => `é${n}`).join(',')
    const chunks = [...text.matchAll(/.{1,100}/gs)].map(([part]) => Buffer.from(part))
    const body = chunks.flatMap((part) => [
      Buffer.from(`${part.length.toString(16)}\r\n`),
      part,
      Buffer.from('\r\n'),
    ])
    const head = Buffer.from('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')
    const whole = Buffer.concat([head, ...body, Buffer.from('0\r\n\r\n')])
    const { outcome } = await callTo({ ...http, lie: whole }, 'lies about the length')
    expect(outcome).toMatchObject({ kind: 'answered', body: text })
  })
})
