/** Which errors a request has caused: the console, façades and routers of plugins decide it in one way. */
import { createServer } from 'node:http'
import express from 'express'
import { expect, test } from 'vitest'
import { answerUnreadable } from '../../src/compat/answer.ts'
import { createConsole } from '../../src/console/console.ts'
import { createPluginRouter } from '../../src/http/plugin-router.ts'
import { createRespond } from '../../src/http/respond.ts'
import { createUnderWay } from '../../src/http/under-way.ts'
import { listen } from '../tools/listen.ts'
import { testMetrics } from '../tools/metrics.ts'

const noVisitor = { operator: { keyId: 'x', name: 'anna', apps: undefined }, csrf: 'x' }

function apps(fail: () => never) {
  const logged: unknown[] = []
  const log = {
    requestFailed: (_: string, error: unknown) => logged.push(error),
    requestFinished() {},
  }
  const deps = { log, metrics: testMetrics(), underWay: createUnderWay() } as never
  const router = express.Router().get('/', fail)
  const ofConsole = {
    routes: [{ method: 'get', path: '/', run: fail }],
    door: { visitorOf: async () => noVisitor },
    nowMs: () => 0,
    log,
  } as unknown as Parameters<typeof createConsole>[0]
  const logs: express.ErrorRequestHandler = (error, _, response, __) => {
    logged.push(error)
    response.status(500).end()
  }
  return {
    logged,
    console: createConsole(ofConsole),
    facade: express().use(
      router,
      answerUnreadable(() => ({ status: 400 })),
      logs,
    ),
    plugin: express().use(
      createPluginRouter({ name: 'acme', router }, {
        ...(deps as object),
        respond: createRespond(deps),
      } as never),
    ),
  }
}

const marked = (fields: object, error: Error = new Error('x')) => Object.assign(error, fields)

test.each(['console', 'facade', 'plugin'] as const)(
  '%s: errors of parsers and of broken paths → 4xx, without a line; errors of the program or of a vendor’s client → 500 with one',
  async (name) => {
    const statusOf = async (error: unknown) => {
      const made = apps(() => {
        throw error
      })
      const { status } = await fetch(await listen(createServer(made[name])))
      return [status, made.logged.length]
    }
    const ofRequest = [
      marked({ status: 400, expose: true, type: 'entity.parse.failed' }),
      marked({ status: 400, expose: true, type: 'querystring.parse.rangeError' }),
      marked({ status: 400 }, new URIError('Failed to decode')),
    ]
    for (const error of ofRequest) expect(await statusOf(error)).toEqual([400, 0])
    const faults = [
      marked({ status: 404 }),
      marked({ status: 400, type: 'request.failed' }),
      marked({ status: 500, expose: true, type: 'request.failed' }),
      marked({}, new URIError('URI malformed')),
    ]
    for (const error of faults) expect(await statusOf(error)).toEqual([500, 1])
  },
)
