/** Callers without a valid key and callers with one, in the turns of the event loop. */
import type { Request, Response } from 'express'
import { expect, test } from 'vitest'
import { createLog } from '../../src/base/log.ts'
import { createMetrics } from '../../src/base/metrics.ts'
import { Problem } from '../../src/base/problems.ts'
import { createRespond } from '../../src/http/respond.ts'

test('I21: a turn answers four callers without a key at most, and those with a key at once', async () => {
  const respond = createRespond({
    metrics: createMetrics({ process: 'api' }),
    log: createLog({ level: 'silent', process: 'api' }),
  })
  let turn = 0
  let isOver = false
  const countTurns = () => {
    turn += 1
    if (!isOver) setImmediate(countTurns)
  }
  const turns: { app: string | undefined; turn: number }[] = []
  const ask = (app?: string) => {
    const request = { headers: {}, method: 'GET' } as Request
    const response = {
      writeHead: () => ({ end: () => turns.push({ app, turn }) }),
    } as unknown as Response
    return respond('unknown', request, response, async ({ facts }) => {
      if (app) facts.app = app
      return new Problem('not_found')
    })
  }

  countTurns()
  const asked = [...Array.from({ length: 50 }, () => ask()), ask('shop'), ask('shop')]
  await Promise.all(asked)
  isOver = true

  expect(turns.slice(0, 2)).toEqual([
    { app: 'shop', turn: 1 },
    { app: 'shop', turn: 1 },
  ])
  const perTurn = Map.groupBy(turns.slice(2), (one) => one.turn)
  expect(Math.max(...[...perTurn.values()].map((some) => some.length))).toBe(4)
  expect(turns).toHaveLength(52)
})
