import { beforeEach, expect, test } from 'vitest'
import { createDecisionWatch, type DecisionWatch } from '../../src/dev/decision-watch.ts'
import { createLimiter, type MemoryLimiter, parsePolicies } from '../../src/limiter/index.ts'
import type { DemoState } from '../../web/demo/demo-state.ts'

const policies = {
  browser: [
    { name: 'recipient', key: '{channel}:{to}', sliding: ['1 per 60s', '5 per 1h'] },
    { name: 'ip', key: '{ip}', sliding: '60 per 10m' },
    { name: 'country', key: '{country}', sliding: '9 per 1h', mode: 'observe' as const },
  ],
  check: [{ name: 'guesses', key: '{to}', lockout: { limit: 3, window: '5m', lock: '15m' } }],
  'browser-check': [{ name: 'check-ip', key: '{ip}', sliding: '60 per 10m' }],
  'browser-guess': [{ include: 'check' }, { include: 'browser-check' }],
}
const parsed = parsePolicies(policies)
if (!parsed.ok) throw new Error('the policies are wrong')

let limiter: MemoryLimiter
let watch: DecisionWatch
beforeEach(() => {
  limiter = createLimiter({ policies })
  watch = createDecisionWatch({ limiter, policies: () => parsed.policies })
})

async function ask(policy: string, to: string) {
  const fields = { channel: 'sms', to, ip: '192.0.2.1', country: 'CN' }
  const decision = await limiter.acquire(policy, fields)
  watch.onDecided({ policy, fields, decision, requestId: 'any', isSolved: false })
  return decision
}
const laneOf = async (rule: string, window: string) => {
  // Only here, the types of both sides meet.
  const { lanes }: Pick<DemoState, 'followed' | 'lanes' | 'decisions'> = await watch.look()
  return lanes.find((lane) => lane.rule === rule && lane.window === window)
}

test('no request yet → every window of sends and guesses, all of it free', async () => {
  const { followed, lanes, decisions } = await watch.look()
  expect(followed).toBeUndefined()
  expect(decisions).toEqual([])
  expect(lanes.map(({ rule, window, used }) => `${rule} ${window} ${used}`)).toEqual([
    'recipient 60s 0',
    'recipient 1h 0',
    'ip 10m 0',
    'country 1h 0',
    'guesses 5m 0',
    'check-ip 10m 0',
  ])
})

test('a caller asks twice → the use at its time in every window, and the refusal with its rule and wait', async () => {
  await ask('browser', '+8613800138000')
  const refusal = await ask('browser', '+8613800138000')
  const { followed, decisions } = await watch.look()
  expect(followed).toEqual({ channel: 'sms', to: '+8613800138000' })
  expect(decisions).toMatchObject([
    { refusal: { policy: 'browser', rule: 'recipient', window: '60s' } },
    { asked: 'send' },
  ])
  expect(decisions[0]?.refusal?.retryAfterMs).toBe(
    'retryAfterMs' in refusal && refusal.retryAfterMs,
  )
  expect(decisions[1]?.refusal).toBeUndefined()
  expect(await laneOf('recipient', '60s')).toMatchObject({
    ...{ used: 1, limit: 1, windowMs: 60_000, mode: 'enforce' },
    takenAtMs: [decisions[1]?.atMs],
  })
})

test('a lane of a bucket: its rate as the window, its burst as the limit, and when all of it is back', async () => {
  const page = { name: 'page', key: '{ip}', bucket: { rate: '10 per 1m', burst: 20 } }
  const others = { ...policies, browser: [page] }
  const read = parsePolicies(others)
  limiter = createLimiter({ policies: others })
  watch = createDecisionWatch({ limiter, policies: () => (read.ok ? read.policies : {}) })
  await ask('browser', '+8613800138000')
  const lane = await laneOf('page', '10 per 1m')
  expect(lane).toMatchObject({ kind: 'bucket', used: 1, limit: 20, windowMs: 120_000 })
  expect(lane?.takenAtMs).toHaveLength(1)
  expect(lane?.resetsInMs).toBeGreaterThan(0)
  expect(lane?.resetsInMs).toBeLessThanOrEqual(6_000)
})

test('another asks → followed from now on; rules that both fall under show the uses of both', async () => {
  await ask('browser', '+8613800138000')
  await ask('browser', '+8613800138001')
  const { followed, decisions } = await watch.look()
  expect(followed?.to).toBe('+8613800138001')
  expect(decisions).toHaveLength(1)
  expect((await laneOf('recipient', '60s'))?.takenAtMs).toHaveLength(1)
  expect((await laneOf('ip', '10m'))?.takenAtMs).toHaveLength(2)
})

test('guesses of a page are shown as such, in separate lanes, up to the lock', async () => {
  for (let guess = 1; guess <= 4; guess++) await ask('browser-guess', '+8613800138000')
  const { decisions } = await watch.look()
  expect(decisions.map(({ asked }) => asked)).toEqual(['check', 'check', 'check', 'check'])
  const lane = await laneOf('guesses', '5m')
  expect(lane?.lockedForMs).toBeGreaterThan(890_000)
})

test('start over → the same recipient is admitted again, and nothing of before is shown', async () => {
  await ask('browser', '+8613800138000')
  await ask('browser-guess', '+8613800138000')
  await watch.forget()
  const { lanes, decisions } = await watch.look()
  expect(decisions).toEqual([])
  expect(lanes.map(({ used }) => used)).toEqual([0, 0, 0, 0, 0, 0])
  expect(await ask('browser', '+8613800138000')).toMatchObject({ admitted: true })
})

test('a decision that comes while starting over stays', async () => {
  await ask('browser', '+8613800138000')
  const startedOver = watch.forget()
  await ask('browser', '+8613800138001')
  await startedOver
  const { followed, decisions } = await watch.look()
  expect(followed?.to).toBe('+8613800138001')
  expect(decisions).toHaveLength(1)
})
