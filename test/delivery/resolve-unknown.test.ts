import { describe, expect, test } from 'vitest'
import { createLog } from '../../src/base/log.ts'
import { Unavailable } from '../../src/base/unavailable.ts'
import { createAttemptLog } from '../../src/delivery/attempt-log.ts'
import type { GuardedProvider } from '../../src/delivery/guarded-provider.ts'
import { createResolveUnknown } from '../../src/delivery/resolve-unknown.ts'
import type { OpenNotice } from '../../src/notice/claim.ts'
import type { Attempt, AttemptOutcome } from '../../src/notice/states.ts'
import type { SendResult, SentMessage } from '../../src/providers/provider.ts'
import { testMetrics } from '../tools/metrics.ts'

const accepted: SendResult = { kind: 'accepted', messageId: 'm-1' }
const notTaken: SendResult = { kind: 'unavailable', detail: 'never heard of it' }
const noWord: SendResult = { kind: 'unknown', detail: 'not yet' }

const metrics = testMetrics()
const log = createLog({ level: 'silent', process: 'test' })
const asked: string[] = []

function provider(name: string, answer?: SendResult, kind = 'fake'): GuardedProvider {
  const query = async (sent: SentMessage) => {
    asked.push(`${name} ${sent.noticeId} ${sent.to} ${new Date(sent.sentAt).toISOString()}`)
    return answer as SendResult
  }
  return { name, kind, ...(answer ? { query } : {}) } as unknown as GuardedProvider
}

const at = (second: number) => `2026-11-22T12:00:0${second}.000Z`

/** Settles the attempts of a notice. Each has a provider (null: lost with its worker) and an outcome. */
async function resolve(
  attempts: readonly [string | null, AttemptOutcome, kind?: string][],
  providers: readonly GuardedProvider[],
  findReceipt: () => Promise<{ provider: string; messageId?: string } | undefined> = async () =>
    undefined,
  hasPassed = false,
) {
  asked.length = 0
  const notice = {
    id: 'notice-1',
    recipient: '+8613800138000',
    hasPassed,
    attempts: attempts.map(
      ([provider, outcome, kind], index): Attempt => ({
        provider,
        kind,
        outcome,
        at: at(index),
        durationMs: 1,
      }),
    ),
  } as unknown as OpenNotice
  const attemptLog = createAttemptLog(notice, { metrics, log })
  const run = createResolveUnknown({ findReceipt })
  const outcome = await run(notice, providers, attemptLog)
  const told = attemptLog.made.map(({ provider, outcome }) => `${provider} ${outcome}`)
  return { outcome, told, left: attemptLog.unknowns().length }
}

test('nothing unknown: neither receipts nor providers are asked', async () => {
  const { outcome } = await resolve([['a', 'unavailable']], [provider('a', accepted)], () => {
    throw new Error('asked for receipts')
  })
  expect(outcome).toBeUndefined()
  expect(asked).toEqual([])
})

test('the provider has it: sent by it, with the words of its answer on the account', async () => {
  const { outcome, told, left } = await resolve([['a', 'unknown']], [provider('a', accepted)])
  expect(outcome).toEqual({ state: 'sent', provider: 'a', providerMessageId: 'm-1' })
  expect(told).toEqual(['a accepted'])
  expect(left).toBe(1)
  expect(asked).toEqual([`a notice-1 +8613800138000 ${at(0)}`])
})

test('the code of the notice passed: sent, and neither receipts nor providers are asked', async () => {
  const findReceipt = () => Promise.reject(new Error('asked for receipts'))
  for (const name of ['a', null]) {
    const { outcome } = await resolve(
      [[name, 'unknown']],
      [provider('a', noWord)],
      findReceipt,
      true,
    )
    expect(outcome).toEqual({ state: 'sent', provider: name ?? undefined })
  }
  expect(asked).toEqual([])
})

test('the provider never took it: the try is none, and nothing is sent', async () => {
  const { outcome, told, left } = await resolve([['a', 'unknown']], [provider('a', notTaken)])
  expect(outcome).toBeUndefined()
  expect(told).toEqual(['a not_taken'])
  expect(left).toBe(0)
})

test('no word yet, or none that can be asked: it stays unknown', async () => {
  for (const silent of [provider('a', noWord), provider('a')]) {
    const { outcome, told, left } = await resolve([['a', 'unknown']], [silent])
    expect(outcome).toBeUndefined()
    expect(told).toEqual([])
    expect(left).toBe(1)
  }
  // The provider of this attempt is no longer on the route.
  expect((await resolve([['gone', 'unknown']], [provider('a', notTaken)])).left).toBe(1)
  expect(asked).toEqual([])
})

test('only the provider that had it is asked', async () => {
  const { told } = await resolve(
    [['b', 'unknown']],
    [provider('a', accepted), provider('b', notTaken)],
  )
  expect(told).toEqual(['b not_taken'])
  expect(asked).toHaveLength(1)
})

test('lost with a worker that stored no provider: every provider is asked; one may have it, but none can deny it', async () => {
  const all = await resolve([[null, 'unknown']], [provider('a', notTaken), provider('b', notTaken)])
  expect([all.told, all.left]).toEqual([[], 1])
  expect(asked).toHaveLength(2)
  const one = await resolve([[null, 'unknown']], [provider('a', notTaken), provider('b', noWord)])
  expect(one.told).toEqual([])
  const first = await resolve([[null, 'unknown']], [provider('a', noWord), provider('b', notTaken)])
  expect(first.told).toEqual([])
  const mute = await resolve([[null, 'unknown']], [provider('a'), provider('b', notTaken)])
  expect(mute.told).toEqual([])
  const had = await resolve([[null, 'unknown']], [provider('a', notTaken), provider('b', accepted)])
  expect(had.outcome).toMatchObject({ state: 'sent', provider: 'b' })
  expect(had.told).toEqual(['b accepted'])
})

test('several unknown tries: each is asked about at its own time, until one turns out to be sent', async () => {
  const { told, outcome } = await resolve(
    [
      ['a', 'unknown'],
      ['b', 'unknown'],
    ],
    [provider('a', notTaken), provider('b', accepted)],
  )
  expect(told).toEqual(['a not_taken', 'b accepted'])
  expect(outcome).toMatchObject({ provider: 'b' })
  expect(asked.map((one) => one.split(' ')[3])).toEqual([at(0), at(1)])
})

test('an early receipt has the first word; with receipts out of reach the providers are asked', async () => {
  const early = await resolve([['a', 'unknown']], [provider('a', notTaken)], async () => ({
    provider: 'b',
    messageId: 'm-9',
  }))
  expect(early.outcome).toEqual({ state: 'sent', provider: 'b', providerMessageId: 'm-9' })
  expect(early.told).toEqual(['b accepted'])
  expect(asked).toEqual([])
  const away = await resolve([['a', 'unknown']], [provider('a', accepted)], () =>
    Promise.reject(new Unavailable('postgresql', undefined)),
  )
  expect(away.outcome).toMatchObject({ state: 'sent', provider: 'a' })
  const broken = resolve([['a', 'unknown']], [provider('a', accepted)], () =>
    Promise.reject(new Error('a fault of ours')),
  )
  await expect(broken).rejects.toThrow('a fault of ours')
})

describe('the provider of the call has been replaced by another', () => {
  test('another name: nothing is asked, and the outcome stays unknown', async () => {
    const { outcome, left } = await resolve([['a', 'unknown']], [provider('b', notTaken)])
    expect([outcome, left, asked]).toEqual([undefined, 1, []])
  })

  test('a provider of the same name and another kind: nothing is asked, and the outcome stays unknown', async () => {
    const attempts: [string, AttemptOutcome, string][] = [['a', 'unknown', 'twilio']]
    const { outcome, left } = await resolve(attempts, [provider('a', notTaken, 'aliyun')])
    expect([outcome, left, asked]).toEqual([undefined, 1, []])
    const same = await resolve(attempts, [provider('a', notTaken, 'twilio')])
    expect(same.left).toBe(0)
  })
})
