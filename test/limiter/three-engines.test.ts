import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createLocalLimiter } from '../../src/limiter/local-limiter.ts'
import { parsePolicies, type RawPolicies } from '../../src/limiter/policies.ts'
import { createRedisLimiter } from '../../src/limiter/redis-limiter.ts'
import { testRedis } from '../support/redis.ts'
import { releaseLater } from '../support/release.ts'
import { randomRules } from './random-policies.ts'
import { createReference, type Verdict } from './reference.ts'
import { virtualRedis } from './virtual-redis.ts'

/** Histories run side by side, one policy each, so that they share clock and batches. */
const historiesPerRound = 125
const rounds = Number(process.env.ROUNDS ?? 80)
const stepsPerHistory = 25
const longMs = 1e10
const seed = Number(process.env.SEED ?? 20_251_121)
const startAt = Date.UTC(2026, 2, 28, 12) // the clocks of Europe/Berlin go forward the night after

describe('I20: Redis engine, in-process engine and a reference that keeps every event', () => {
  test(`decide alike in ${rounds * historiesPerRound} random histories of mixed rules; I19; trap 17`, async () => {
    const server = await testRedis()
    const { redis, setTime } = virtualRedis(server.client)
    for (let round = 0; round < rounds; round++) {
      await runRound(redis, setTime, server.prefix, seed + round)
      await server.client.flushdb()
    }
  }, 300_000)
})

async function runRound(
  redis: Parameters<typeof createRedisLimiter>[0]['redis'],
  setTime: (nowMs: number) => Promise<unknown>,
  keyPrefix: string,
  roundSeed: number,
): Promise<void> {
  const policies: RawPolicies = Object.fromEntries(
    fc
      .sample(randomRules, { numRuns: historiesPerRound, seed: roundSeed })
      .map((rules, index) => [`policy${index}`, rules]),
  )
  const parsed = parsePolicies(policies)
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems))
  let now = startAt
  const observed: Record<'redis' | 'local', string[]> = { redis: [], local: [] }
  const overRedis = createRedisLimiter({
    policies,
    redis,
    keyPrefix,
    deadlineMs: 10_000,
    rememberRefusalsMs: 0,
    rememberRequestsMs: longMs,
    onObserved: ({ rule }) => observed.redis.push(rule),
  })
  releaseLater(() => overRedis.close())
  const local = createLocalLimiter({
    policies,
    clock: () => now,
    rememberRequestsMs: longMs,
    onObserved: ({ rule }) => observed.local.push(rule),
  })
  const histories = Object.entries(parsed.policies).map(([name, rules]) => ({
    name,
    rules,
    reference: createReference(rules),
    log: [] as string[],
    lastRetryMs: 0,
    lastRequestId: '',
    maxPermits: Math.min(
      3,
      ...rules
        .filter((rule) => rule.mode === 'enforce')
        .flatMap((rule) =>
          rule.quotas.map((quota) => (quota.limit ? Math.floor(quota.limit / rule.permits) : 3)),
        ),
    ),
  }))
  const draw = seededDraw(roundSeed)

  let hasReset = false
  for (let step = 0; step < stepsPerHistory; step++) {
    const some = histories[draw(histories.length)] as (typeof histories)[number]
    const pause = draw(8)
    // Now and then exactly to the end of somebody's wait, or one millisecond before it.
    if (pause < 3 && some.lastRetryMs > 1) now += some.lastRetryMs - (pause === 0 ? 1 : 0)
    else if (pause === 3) now += draw(4)
    else if (pause === 4) now += draw(86_400_000)
    else if (pause > 4) now += draw(20_000)
    // What is taken in the millisecond of a reset counts as taken before it, for a later release.
    if (hasReset) now += 1
    hasReset = false
    await setTime(now)
    await Promise.all(
      histories.map(async (history) => {
        const { name, reference, log } = history
        const fields = { subject: 'one' }
        const action = draw(20)
        if (action === 0 && history.lastRequestId !== '') {
          const id = history.lastRequestId
          log.push(`${now} release ${id}`)
          const expected = reference.release(id)
          expect(await overRedis.release(name, fields, id), log.join('\n')).toBe(expected)
          expect(await local.release(name, fields, id)).toBe(expected)
          return
        }
        if (action === 1 && draw(4) === 0) {
          log.push(`${now} reset`)
          hasReset = true
          reference.reset()
          await overRedis.reset(name, fields)
          await local.reset(name, fields)
          return
        }
        const permits = 1 + (draw(3) === 0 ? draw(history.maxPermits) : 0)
        const isResend = action === 2 && history.lastRequestId !== ''
        const requestId = isResend ? history.lastRequestId : action < 12 ? `${step}` : undefined
        const options = { permits, ...(requestId === undefined ? {} : { requestId }) }
        const expected = plain(reference.acquire(now, permits, requestId))
        if (requestId !== undefined) history.lastRequestId = requestId
        log.push(`${now} acquire ${JSON.stringify(options)} → ${JSON.stringify(expected)}`)
        const answers = {
          'in process': plain(local.tryAcquire(name, fields, options)),
          'over Redis': plain(await overRedis.acquire(name, fields, options)),
        }
        for (const [engine, answer] of Object.entries(answers)) {
          if (isDeepStrictEqual(answer, expected)) continue
          const context = `${JSON.stringify(history.rules)}\n${log.join('\n')}`
          expect(answer, `${engine}, seed ${roundSeed}\n${context}`).toEqual(expected)
        }
        history.lastRetryMs = 'retryAfterMs' in expected ? (expected.retryAfterMs as number) : 0
      }),
    )
  }
}

/** Whole numbers below a bound, the same ones for the same seed (xorshift). */
function seededDraw(from: number): (below: number) => number {
  let state = from
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}

/** The members that all three have. */
function plain(
  verdict: Verdict | Awaited<ReturnType<ReturnType<typeof createLocalLimiter>['acquire']>>,
) {
  if (!verdict.admitted) {
    const { rule, window, retryAfterMs } = verdict
    return { rule, window, retryAfterMs }
  }
  const left = 'left' in verdict ? verdict.left : verdict.remaining.map((one) => one.left)
  return { left, nextInMs: verdict.nextInMs }
}
