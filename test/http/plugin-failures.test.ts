/** A call of a plugin fails: the 503 of the plugin is counted and logged by the cause of the failure. */
import { createServer } from 'node:http'
import { connect } from 'node:net'
import express, { type Response } from 'express'
import { expect, test, vi } from 'vitest'
import type { Log } from '../../src/base/log.ts'
import { Problem } from '../../src/base/problems.ts'
import { Overloaded, Unavailable } from '../../src/base/unavailable.ts'
import { createCalls, type PosternCalls } from '../../src/http/in-process.ts'
import { createPluginRouter } from '../../src/http/plugin-router.ts'
import { createRespond } from '../../src/http/respond.ts'
import { createUnderWay } from '../../src/http/under-way.ts'
import { listen } from '../tools/listen.ts'
import { testMetrics } from '../tools/metrics.ts'
import { eventually } from '../tools/wait.ts'

const away = new Unavailable('redis', new Error('connect ECONNREFUSED'))
const overloaded = new Overloaded('postgresql', 'too many wait')
const fault = new TypeError('a fault of the plugin')

/** The count of refusals by load and the logged errors after one request to a plugin whose call fails with `error`. */
async function recordOf(error: Error, answer: (response: Response) => void) {
  const metrics = testMetrics()
  const failed: unknown[] = []
  const reasons: unknown[] = []
  const log = {
    requestFailed: (_: string, cause: unknown) => failed.push(cause),
    requestFinished: ({ reason }: { reason?: string }) => reasons.push(reason),
  } as unknown as Log
  const deps = { metrics, log, underWay: createUnderWay() }
  const reads = { findNotice: () => Promise.reject(error) }
  const calls = createCalls({ ...deps, reads } as never)
  const router = express.Router().get('/', async (_, response) => {
    const found = await calls.findNotice({ app: 'shop', id: 'x' })
    expect(found).toEqual({ outcome: 'unavailable' })
    answer(response)
  })
  const answers = { respond: createRespond(deps), ...deps }
  const url = await listen(
    createServer(express().use(createPluginRouter({ name: 'acme', router }, answers))),
  )
  const { status } = await fetch(url)
  await eventually(() => expect(reasons).toHaveLength(1))
  const { values } = await metrics.shed.get()
  return { status, shed: values.reduce((sum, { value }) => sum + value, 0), failed, reasons }
}

const byItself = (response: Response) => void response.status(503).end()
const byProblem = () => {
  throw new Problem('unavailable')
}
const byFault = () => {
  throw fault
}
const inAnotherWay = (response: Response) => void response.end()

test.each([
  ['a server is away, the plugin answers', away, byItself, [503, 0, [away]]],
  ['a server is away, the plugin throws a problem', away, byProblem, [503, 0, [away]]],
  ['a server is away, the plugin throws another error', away, byFault, [500, 0, [fault]]],
  ['a server is away, the plugin answers without it', away, inAnotherWay, [200, 0, []]],
  ['too many wait, the plugin answers', overloaded, byItself, [503, 1, []]],
  ['too many wait, the plugin throws a problem', overloaded, byProblem, [503, 1, []]],
])('%s', async (_, error, answer, [status, shed, failed]) => {
  const reasons = [shed === 1 ? 'load' : undefined]
  expect(await recordOf(error, answer)).toEqual({ status, shed, failed, reasons })
})

const parsers: [string, (calls: PosternCalls) => express.RequestHandler][] = [
  ['express.urlencoded', () => express.urlencoded({ extended: false })],
  ['express.json', () => express.json({ type: () => true })],
  [
    'readBody',
    (calls) => async (request, _, next) => {
      await calls.readBody(request, 100)
      next()
    },
  ],
]
test.each(
  parsers.flatMap(([name, parser]) =>
    ['before the plugin', 'in the plugin'].map((place) => [place, name, parser] as const),
  ),
)(
  'the client leaves while a step %s waits, then %s reads its body → one record, 499, and no fault',
  async (place, _, parser) => {
    const metrics = testMetrics()
    const failed: unknown[] = []
    const statuses: unknown[] = []
    const log = {
      requestFailed: (_: string, cause: unknown) => failed.push(cause),
      requestFinished: ({ status }: { status: number }) => statuses.push(status),
    } as unknown as Log
    const deps = { metrics, log, underWay: createUnderWay() }
    const calls = createCalls(deps as never)
    const waits = Promise.withResolvers<void>()
    const begun = vi.fn()
    const wait: express.RequestHandler = async (request, _, next) => {
      request.socket.once('close', () => setImmediate(() => waits.resolve()))
      begun()
      await waits.promise
      next()
    }
    const answers = { respond: createRespond(deps), ...deps }
    const read = express
      .Router()
      .use(place === 'in the plugin' ? wait : (_, __, next) => next())
      .use(parser(calls))
      .use((_, response) => void response.end())
    const app = express()
    if (place === 'before the plugin') app.use(wait)
    const url = await listen(
      createServer(app.use(createPluginRouter({ name: 'acme', router: read }, answers))),
    )
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.write(
      'POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n',
    )
    socket.write('Content-Length: 9\r\n\r\na=')
    await eventually(() => expect(begun).toHaveBeenCalled())
    socket.destroy()
    await eventually(() => expect(statuses).toHaveLength(1))
    // Two turns later nothing more has come.
    for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect([statuses, failed]).toEqual([[499], []])
  },
)
