/** More requests than the process can answer in time. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import express from 'express'
import { expect, test, vi } from 'vitest'
import type { Log } from '../../src/base/log.ts'
import { createCalls } from '../../src/http/in-process.ts'
import { defineRoute } from '../../src/http/route.ts'
import { createRouter } from '../../src/http/router.ts'
import { createUnderWay } from '../../src/http/under-way.ts'
import { listen } from '../tools/listen.ts'
import { testMetrics } from '../tools/metrics.ts'
import { closeLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

/** One request works at a time, and one of each app waits. */
async function open() {
  const metrics = testMetrics()
  const records: { status: number; reason?: string; durationMs: number }[] = []
  const log = { requestFinished: (facts: never) => records.push(facts) } as unknown as Log
  const waits = { maxWaiting: 1, maxWaitMs: 60_000, maxExpectedMs: 60_000 }
  const underWay = createUnderWay({
    work: { ...waits, maxUnderWay: 1 },
    waitSeconds: metrics.waitSeconds,
  })
  const works: (() => void)[] = []
  const route = (path: string, isRead?: true) =>
    defineRoute({
      ...{
        path,
        name: path,
        method: 'post',
        summary: '',
        access: 'secret',
        ...(isRead && { isRead }),
      },
      ...{ answers: {}, problems: [] },
      async run() {
        await new Promise<void>((resolve) => works.push(resolve))
        return { status: 204 }
      },
    })
  const router = createRouter({
    routes: [route('/work'), route('/read', true)],
    authenticate: async (app) => ({ id: 'k', app, kind: 'secret', origins: [] }),
    isListedOrigin: async () => false,
    ...{ metrics, log, underWay },
  })
  const url = await listen(createServer(express().use(router)))
  const send = async (app: string, path = '/work') => {
    const socket = closeLater(connect(Number(new URL(url).port), '127.0.0.1'), 'destroy')
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk
    })
    await once(socket, 'connect')
    socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${app}\r\n\r\n`)
    return { socket, answer: () => answer }
  }
  const answered = (one: { answer(): string }) => eventually(() => one.answer() || false)
  const shed = async () => (await metrics.shed.get()).values.find(({ value }) => value > 0)?.value
  return { underWay, metrics, records, works, send, answered, shed }
}

test('a request above those that can wait → 503 with Retry-After at once, counted as shed; another app still waits', async () => {
  const { records, works, send, answered, shed, metrics } = await open()
  const first = await send('shop')
  await eventually(() => works.length === 1)
  const second = await send('shop')
  const third = await send('shop')
  const early = await Promise.race([answered(second), answered(third)])
  expect(early).toMatch(/^HTTP\/1\.1 503[\s\S]*"code":"unavailable"/)
  expect(early.toLowerCase()).toContain('retry-after: 2')
  expect(await shed()).toBe(1)
  expect(records).toMatchObject([{ status: 503, reason: 'load' }])
  const other = await send('bank')
  for (let count = 0; count < 3; count++) {
    await eventually(() => works.length === count + 1)
    works[count]?.()
  }
  for (const one of [first, second, other].filter((one) => !one.answer().includes(' 503 '))) {
    expect(await answered(one)).toMatch(/^HTTP\/1\.1 204/)
  }
  expect(await metrics.registry.metrics()).toMatch(/http_wait_seconds_count{[^}]*} 3/)
})

test('the client of a request leaves while it waits → its work never starts, and it is counted as 499', async () => {
  const { records, works, send, answered } = await open()
  const first = await send('shop')
  await eventually(() => works.length === 1)
  const second = await send('shop')
  const refused = await send('shop')
  await answered(refused)
  second.socket.destroy()
  // The server sees the end before the turn.
  await answered(await send('shop'))
  works[0]?.()
  await answered(first)
  await eventually(() => records.some(({ status }) => status === 499))
  expect(works).toHaveLength(1)
})

test('reads have separate turns: four at a time, and the next is of the app that has none', async () => {
  const { works, send, answered } = await open()
  for (let count = 0; count < 4; count++) await send('reports', '/read')
  await eventually(() => works.length === 4)
  const queued = await Promise.all(Array.from({ length: 20 }, () => send('reports', '/read')))
  const other = await send('shop', '/read')
  const work = await send('shop')
  await eventually(() => works.length === 5)
  works[4]?.()
  expect(await answered(work)).toMatch(/^HTTP\/1\.1 204/)
  works[0]?.()
  await eventually(() => works.length === 6)
  works[1]?.()
  await eventually(() => works.length === 7)
  for (const done of works) done()
  expect(await answered(other)).toMatch(/^HTTP\/1\.1 204/)
  expect(queued.filter((one) => one.answer() !== '').length).toBeLessThan(6)
})

test('calls in process share the turns: the rest is unavailable, and other addresses of the app lose nothing', async () => {
  const waits = { maxWaiting: 3, maxWaitMs: 60_000, maxExpectedMs: 60_000 }
  const underWay = createUnderWay({ work: { ...waits, maxUnderWay: 1 } })
  const done: (() => void)[] = []
  const sendCaptcha = vi.fn(async () => {
    await new Promise<void>((resolve) => done.push(resolve))
    return { outcome: 'accepted' }
  })
  const calls = createCalls({ underWay, sendCaptcha } as never)
  const send = async (ip: string) => {
    const asked = { app: 'shop', channel: 'sms', to: '+8613800138000', scene: 'login', ip } as const
    return (await calls.sendCaptcha(asked)).outcome
  }
  const flood = Array.from({ length: 10 }, () => send('10.0.0.1'))
  const others = [send('10.0.0.2'), send('10.0.0.3')]
  for (let count = 0; count < 4; count++) {
    await eventually(() => done.length === count + 1)
    done[count]?.()
  }
  expect(await Promise.all(others)).toEqual(['accepted', 'accepted'])
  const outcomes = await Promise.all(flood)
  expect(outcomes.filter((outcome) => outcome === 'unavailable')).toHaveLength(8)
})
