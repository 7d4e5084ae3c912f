import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import type { Redis } from 'ioredis'
import { expect } from 'vitest'
import {
  createLimiter,
  type Decision,
  type Limiter,
  type LimiterRedis,
  parsePolicies,
  type RawPolicies,
} from '../../src/limiter/index.ts'
import { type RawRule, randomRules, rulesOfManyUses } from './random-policies.ts'
import { createReference, type Verdict } from './reference.ts'
import { virtualTime } from './virtual-time.ts'

/** Histories run side by side, one policy each, so that they share clock and batches. */
interface Drawn {
  readonly rules: fc.Arbitrary<RawRule[]>
  readonly histories: number
  readonly steps: number
}
export const historiesPerRound = 125
const ordinary: Drawn = { rules: randomRules, histories: historiesPerRound, steps: 25 }
/** Fewer histories, long enough to reach limits of a hundred uses. */
export const long: Drawn = { rules: rulesOfManyUses, histories: 25, steps: 200 }
const longMs = 1e10
const startAt = Date.UTC(2026, 2, 28, 12) // the clocks of Europe/Berlin go forward the night after

/** The prefix of the Redis engine's keys. */
interface Place {
  readonly servers: readonly Redis[]
  readonly redis: LimiterRedis
  readonly keyPrefix: string
}

/** Asks the Redis engine, the in-process engine and the reference the same. Throws if their decisions differ. */
export async function runRound(place: Place, roundSeed: number, drawn = ordinary): Promise<void> {
  const opened: Limiter[] = []
  try {
    await compareEngines(place, roundSeed, drawn, opened)
  } finally {
    for (const limiter of opened) limiter.close()
  }
}

async function compareEngines(
  { servers, redis, keyPrefix }: Place,
  roundSeed: number,
  drawn: Drawn,
  opened: Limiter[],
): Promise<void> {
  const policies: RawPolicies = Object.fromEntries(
    fc
      .sample(drawn.rules, { numRuns: drawn.histories, seed: roundSeed })
      .map((rules, index) => [`policy${index}`, rules]),
  )
  const parsed = parsePolicies(policies)
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems))
  let now = startAt
  const time = virtualTime(servers, now)
  const { clock } = time
  const observed: Record<'redis' | 'local', string[]> = { redis: [], local: [] }
  const overRedis = createLimiter({
    policies,
    redis,
    keyPrefix,
    clock,
    deadlineMs: 10_000,
    rememberRefusalsMs: 0,
    rememberRequestsMs: longMs,
    onObserved: ({ rule }) => observed.redis.push(rule),
  })
  opened.push(overRedis)
  const local = createLimiter({
    policies,
    clock,
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
        .filter((rule) => rule.mode !== 'observe')
        .flatMap((rule) =>
          rule.windows.map(({ limit }) => (limit ? Math.floor(limit / Number(rule.permits)) : 3)),
        ),
    ),
  }))
  const draw = seededDraw(roundSeed)

  let hasReset = false
  for (let step = 0; step < drawn.steps; step++) {
    const some = histories[draw(histories.length)] as (typeof histories)[number]
    const pause = draw(8)
    // Now and then exactly to the end of a wait, or one millisecond before it.
    if (pause < 3 && some.lastRetryMs > 1) now += some.lastRetryMs - (pause === 0 ? 1 : 0)
    else if (pause === 3) now += draw(4)
    else if (pause === 4) now += draw(86_400_000)
    else if (pause > 4) now += draw(20_000)
    // A use in the millisecond of a reset counts as earlier than the reset, for a later release.
    if (hasReset) now += 1
    hasReset = false
    await time.set(now)
    await Promise.all(
      histories.map(async (history) => {
        const { name, reference, log } = history
        const fields = { subject: 'one' }
        const action = draw(20)
        if (action === 0 && history.lastRequestId !== '') {
          const id = history.lastRequestId
          log.push(`${now} release ${id}`)
          const expected = reference.release(id, clock())
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
        const isSolved = draw(3) === 0
        const options = { permits, requestId, isSolved }
        const expected = plain(reference.acquire(clock(), permits, requestId, isSolved))
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

/** Whole numbers below a bound. The same seed gives the same numbers (xorshift). */
function seededDraw(from: number): (below: number) => number {
  let state = from
  return (below) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % below
  }
}

/** The members that all three answers have. */
function plain(verdict: Verdict | Decision) {
  if (!verdict.admitted) {
    const { rule, window, retryAfterMs, challenge = false, newLock } = verdict
    return { rule, window, retryAfterMs, challenge, newLock }
  }
  const left = 'left' in verdict ? verdict.left : verdict.remaining.map((one) => one.left)
  return { left, nextInMs: verdict.nextInMs }
}
