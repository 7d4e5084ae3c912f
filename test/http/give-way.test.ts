/** Callers without a valid key and callers with one, by turns of the event loop. */
import { once } from 'node:events'
import { createServer, ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import express, { type Request, type Response } from 'express'
import { expect, test, vi } from 'vitest'
import { floodedFacades, wire } from '../../bench/flood.ts'
import { createLog } from '../../src/base/log.ts'
import { Problem } from '../../src/base/problems.ts'
import { createCalls } from '../../src/http/in-process.ts'
import type { Call } from '../../src/http/request-record.ts'
import { createRespond } from '../../src/http/respond.ts'
import { createUnderWay } from '../../src/http/under-way.ts'
import { createPostern, type PosternCalls } from '../../src/main/create-postern.ts'
import { testDatabase } from '../tools/database.ts'
import { listen } from '../tools/listen.ts'
import { testMetrics } from '../tools/metrics.ts'
import { noLimits, posternEnv } from '../tools/postern.ts'
import { publishableKey } from '../tools/publishable-key.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

/** Asks for answers in one turn of the event loop. Each answer notes the turn in which it is written. */
function openAsk() {
  const respond = createRespond({
    metrics: testMetrics(),
    log: createLog({ level: 'silent', process: 'api' }),
    underWay: createUnderWay(),
  })
  const turn = countTurns()
  const turns: { app?: string | undefined; ip: string; name?: unknown; turn: number }[] = []
  const ask = (app?: string, isRefused = true, ip = '10.0.0.1', more: Partial<Call> = {}) => {
    const request = { headers: {}, method: 'GET', ip } as Request
    const response = {
      writeHead: () => ({
        end: () => turns.push({ app, ip, name: more.facts?.name, turn: turn() }),
      }),
    } as unknown as Response
    return respond('unknown', request, response, async (call) => {
      Object.assign(call, more)
      if (app) call.facts.app = app
      return isRefused ? new Problem('not_found') : { status: 204 }
    })
  }
  return { ask, turns }
}

test('I21: a turn answers four callers without a key at most, and those with a key at once', async () => {
  const { ask, turns } = openAsk()
  const asked = [...Array.from({ length: 50 }, () => ask()), ask('shop', false), ask('shop', false)]
  await Promise.all(asked)

  expect(turns.slice(0, 2)).toMatchObject([
    { app: 'shop', turn: 0 },
    { app: 'shop', turn: 0 },
  ])
  expect(mostPerTurn(turns.slice(2).map((one) => one.turn))).toBe(4)
  expect(turns).toHaveLength(52)
})

test('refusals of callers with a key are written together, before later callers without one', async () => {
  const { ask, turns } = openAsk()
  await Promise.all([
    ...Array.from({ length: 9 }, () => ask('shop')),
    ...Array.from({ length: 9 }, () => ask()),
  ])
  const turnsOf = (app?: string) => turns.filter((one) => one.app === app).map(({ turn }) => turn)
  expect(turnsOf('shop')).toEqual(Array(9).fill(1))
  expect(Math.max(...turnsOf())).toBeGreaterThan(1)
})

test('I21: addresses share the turns of strangers: a flood of one delays that one', async () => {
  const { ask, turns } = openAsk()
  await Promise.all([
    ...Array.from({ length: 50 }, () => ask()),
    ...Array.from({ length: 3 }, () => ask(undefined, true, '10.0.0.2')),
  ])
  expect(turns).toHaveLength(53)
  // The first turn is full before the second address asks.
  expect(turns.slice(0, 10).map(({ ip }) => ip)).toEqual([
    ...Array(4).fill('10.0.0.1'),
    ...['10.0.0.1', '10.0.0.2', '10.0.0.1', '10.0.0.2', '10.0.0.1', '10.0.0.2'],
  ])
})

test('during a flood of the same address: a genuine receipt does not wait, and the preflight of a listed page has the next turn', async () => {
  const { ask, turns } = openAsk()
  const flood = Array.from({ length: 50 }, () => ask())
  await Promise.all([
    ask(undefined, false, '10.0.0.1', { isOfListedPage: true, facts: { name: 'preflight' } }),
    ask(undefined, false, '10.0.0.1', { isKnown: true, facts: { name: 'receipt' } }),
    ...flood,
  ])
  const turnOf = (name: string) => turns.find((one) => one.name === name)?.turn
  expect([turnOf('receipt'), turnOf('preflight')]).toEqual([0, 2])
})

test('a body whose signature is right does not wait; one without gives way', async () => {
  const calls = createCalls({ underWay: createUnderWay() } as never)
  const turn = countTurns()
  const read = async (isGenuine?: () => boolean) => {
    const request = { headers: {}, body: Buffer.from('x'), res: { once() {} } } as never
    await calls.readBody(request, 100, isGenuine)
    return turn()
  }
  const flood = Array.from({ length: 20 }, () => read())
  expect(await read(() => true)).toBe(0)
  expect(await read(() => false)).toBeGreaterThan(4)
  await Promise.all(flood)
})

/** A plugin that refuses every body with its own answer. */
const refusing = {
  name: 'refusing',
  router: (postern: PosternCalls) =>
    express.Router().post('/refusing', async (request, response) => {
      await postern.readBody(request, 100)
      response.writeHead(401, { 'content-length': '0' }).end()
    }),
}
const service = `VA${'a'.repeat(32)}`
const on = { redis: await testRedis(), database: await testDatabase() }
const environment = posternEnv({
  ...on,
  policyFile: {
    policies: noLimits,
    compat: { ...floodedFacades, twilioVerify: { services: { [service]: { app: 'default' } } } },
  },
})
const postern = await createPostern({
  environment,
  keyPrefix: on.redis.prefix,
  plugins: [refusing],
})
releaseLater(() => postern.close())
const pageKey = await publishableKey(on.database)
const unknownPath: express.RequestHandler = (_, response) => void response.status(404).end()
const url = await listen(createServer(express().use(postern.router, unknownPath)))

const json = { 'content-type': 'application/json' }
const sendCode = '/one-time-password-sms/v1/send-code'
let people = 0
const sendCodeTo = (headers: Record<string, string> = {}) => {
  const body = { phoneNumber: `+86138001${10_000 + people++}`, message: '{{code}}' }
  return wire('POST', sendCode, { ...json, ...headers }, JSON.stringify(body))
}
const basic = (password: string) =>
  `Basic ${Buffer.from(`AC${'0'.repeat(32)}:${password}`).toString('base64')}`
const signed = () => ({
  'zitadel-signature': `t=${Math.floor(Date.now() / 1_000)},v1=${'a'.repeat(64)}`,
})

test.each([
  ['CAMARA without a key', sendCodeTo, 401],
  ['another method of CAMARA', () => wire('GET', sendCode), 401],
  ['an unknown path of Twilio', () => wire('GET', '/v2/Services'), 401],
  ['CAMARA with a wrong key', () => sendCodeTo({ authorization: 'Bearer psk_wrong' }), 401],
  [
    'Twilio with a wrong key',
    () =>
      wire('POST', `/v2/Services/${service}/Verifications`, { authorization: basic('wrong') }, 'x'),
    401,
  ],
  [
    'CAMARA with the key of a page, which every visitor knows',
    () => sendCodeTo({ authorization: `Bearer ${pageKey}` }),
    403,
  ],
  ['a hook with a wrong signature', () => wire('POST', '/v1/hooks/zitadel', signed(), 'x'), 401],
  ['a hook without a signature', () => wire('POST', '/v1/hooks/zitadel', {}, 'x'), 401],
  [
    'a file of the API page',
    () => wire('GET', '/docs/swagger-ui.css', { 'if-none-match': '*' }),
    304,
  ],
  ['a plugin that reads and refuses', () => wire('POST', '/refusing', {}, 'x'), 401],
])(
  'I21: %s: a turn answers four at most, and the valid request behind them passes',
  async (_, next, status) => {
    const turn = countTurns()
    const turns: number[] = []
    const writeHead = ServerResponse.prototype.writeHead
    const spy = vi.spyOn(ServerResponse.prototype, 'writeHead')
    spy.mockImplementation(function (this: ServerResponse, ...given) {
      if (given[0] === status) turns.push(turn())
      return writeHead.apply(this, given as Parameters<typeof writeHead>)
    })
    releaseLater(() => spy.mockRestore())
    // A file of the API page is compressed for its first reader.
    await answerOn(await openSocket(), next())
    turns.length = 0
    const sockets = await Promise.all(Array.from({ length: 41 }, openSocket))
    const key = environment.BOOTSTRAP_SECRET_KEY
    const valid = sendCodeTo({ authorization: `Bearer ${key}` })
    const answers = sockets.map((socket, index) => answerOn(socket, index < 40 ? next() : valid))
    const statuses = await Promise.all(answers)

    // A busy server may answer 503, and another one is accepted then.
    const passed = statuses.pop()
    if (passed === 503)
      await eventually(async () => (await answerOn(await openSocket(), valid)) === 200)
    else expect(passed).toBe(200)
    expect(new Set(statuses)).toEqual(new Set([status]))
    expect(turns).toHaveLength(40)
    expect(mostPerTurn(turns)).toBeLessThanOrEqual(4)
  },
)

async function openSocket() {
  const socket = closeLater(connect(Number(new URL(url).port), '127.0.0.1'), 'destroy')
  await once(socket, 'connect')
  // The server accepts one connection per turn. So it has accepted all of them before the flood.
  await answerOn(socket, wire('GET', '/nothing'))
  return socket
}

async function answerOn(socket: Socket, bytes: string): Promise<number> {
  socket.write(bytes)
  const [head] = await once(socket, 'data')
  return Number(String(head).slice(9, 12))
}

/** Counts the turns of the event loop, from now until the test ends. */
function countTurns(): () => number {
  let turn = 0
  let next = setImmediate(function count() {
    turn += 1
    next = setImmediate(count)
  })
  releaseLater(() => clearImmediate(next))
  return () => turn
}

const mostPerTurn = (turns: readonly number[]) =>
  Math.max(...[...Map.groupBy(turns, (turn) => turn).values()].map((some) => some.length))
