import { expect, test } from 'vitest'
import { createLog } from '../../src/base/log.ts'
import { Unavailable } from '../../src/base/problems.ts'
import type { Gate } from '../../src/delivery/gate.ts'
import { createSettle } from '../../src/delivery/settle.ts'
import { createTries } from '../../src/delivery/tries.ts'
import { createMetrics } from '../../src/metrics/metrics.ts'
import type { Attempt, Outcome } from '../../src/notice/states.ts'
import type { OpenNotice } from '../../src/notice/store.ts'
import type { SendResult, SentMessage } from '../../src/providers/provider.ts'

const accepted: SendResult = { kind: 'accepted', messageId: 'm-1' }
const notTaken: SendResult = { kind: 'unavailable', detail: 'never heard of it' }
const noWord: SendResult = { kind: 'unknown', detail: 'not yet' }

const metrics = createMetrics({ process: 'worker' })
const log = createLog({ level: 'silent', process: 'test' })
const asked: string[] = []

function gate(name: string, answer?: SendResult): Gate {
  const query = async (sent: SentMessage, timeoutMs: number) => {
    asked.push(
      `${name} ${sent.noticeId} ${sent.to} ${new Date(sent.sentAt).toISOString()} ${timeoutMs}`,
    )
    return answer as SendResult
  }
  return { name, ...(answer ? { query } : {}) } as unknown as Gate
}

const at = (second: number) => `2026-11-22T12:00:0${second}.000Z`

/** Settles the tries of a notice; each is a provider (null: lost with its worker) and an outcome. */
async function settle(
  attempts: readonly [string | null, Outcome][],
  gates: readonly Gate[],
  findReceipt: () => Promise<{ provider: string; messageId?: string } | undefined> = async () =>
    undefined,
) {
  asked.length = 0
  const notice = {
    id: 'notice-1',
    recipient: '+8613800138000',
    attempts: attempts.map(
      ([provider, outcome], index): Attempt => ({
        provider,
        outcome,
        at: at(index),
        durationMs: 1,
      }),
    ),
  } as unknown as OpenNotice
  const tries = createTries(notice, {
    metrics,
    log,
  })
  const run = createSettle({ earlyReceipts: { find: findReceipt }, timeoutMs: 777 })
  const ending = await run(notice, gates, tries)
  const told = tries.made.map(({ provider, outcome }) => `${provider} ${outcome}`)
  return { ending, told, left: tries.unknowns().length }
}

test('nothing unknown: neither receipts nor providers are asked', async () => {
  const { ending } = await settle([['a', 'unavailable']], [gate('a', accepted)], () => {
    throw new Error('asked for receipts')
  })
  expect(ending).toBeUndefined()
  expect(asked).toEqual([])
})

test('the provider has it: sent by it, with the words of its answer on the account', async () => {
  const { ending, told, left } = await settle([['a', 'unknown']], [gate('a', accepted)])
  expect(ending).toEqual({ state: 'sent', provider: 'a', providerMessageId: 'm-1' })
  expect(told).toEqual(['a accepted'])
  expect(left).toBe(1)
  expect(asked).toEqual([`a notice-1 +8613800138000 ${at(0)} 777`])
})

test('the provider never took it: the try is none, and nothing is sent', async () => {
  const { ending, told, left } = await settle([['a', 'unknown']], [gate('a', notTaken)])
  expect(ending).toBeUndefined()
  expect(told).toEqual(['a not_taken'])
  expect(left).toBe(0)
})

test('no word yet, or none that can be asked: it stays unknown', async () => {
  for (const silent of [gate('a', noWord), gate('a')]) {
    const { ending, told, left } = await settle([['a', 'unknown']], [silent])
    expect(ending).toBeUndefined()
    expect(told).toEqual([])
    expect(left).toBe(1)
  }
  // Its provider is no longer on the route.
  expect((await settle([['gone', 'unknown']], [gate('a', notTaken)])).left).toBe(1)
  expect(asked).toEqual([])
})

test('only the provider that had it is asked', async () => {
  const { told } = await settle([['b', 'unknown']], [gate('a', accepted), gate('b', notTaken)])
  expect(told).toEqual(['b not_taken'])
  expect(asked).toHaveLength(1)
})

test('lost with its worker: every provider is asked, and it was not taken when all of them say so', async () => {
  const all = await settle([[null, 'unknown']], [gate('a', notTaken), gate('b', notTaken)])
  expect(all.told).toEqual(['null not_taken'])
  expect(asked).toHaveLength(2)
  const one = await settle([[null, 'unknown']], [gate('a', notTaken), gate('b', noWord)])
  expect(one.told).toEqual([])
  const first = await settle([[null, 'unknown']], [gate('a', noWord), gate('b', notTaken)])
  expect(first.told).toEqual([])
  const mute = await settle([[null, 'unknown']], [gate('a'), gate('b', notTaken)])
  expect(mute.told).toEqual([])
  const had = await settle([[null, 'unknown']], [gate('a', notTaken), gate('b', accepted)])
  expect(had.ending).toMatchObject({ state: 'sent', provider: 'b' })
  expect(had.told).toEqual(['b accepted'])
})

test('several unknown tries: each is asked about at its own time, until one turns out to be sent', async () => {
  const { told, ending } = await settle(
    [
      ['a', 'unknown'],
      ['b', 'unknown'],
    ],
    [gate('a', notTaken), gate('b', accepted)],
  )
  expect(told).toEqual(['a not_taken', 'b accepted'])
  expect(ending).toMatchObject({ provider: 'b' })
  expect(asked.map((one) => one.split(' ')[3])).toEqual([at(0), at(1)])
})

test('an early receipt has the first word; with receipts out of reach the providers are asked', async () => {
  const early = await settle([['a', 'unknown']], [gate('a', notTaken)], async () => ({
    provider: 'b',
    messageId: 'm-9',
  }))
  expect(early.ending).toEqual({ state: 'sent', provider: 'b', providerMessageId: 'm-9' })
  expect(early.told).toEqual(['b accepted'])
  expect(asked).toEqual([])
  const away = await settle([['a', 'unknown']], [gate('a', accepted)], () =>
    Promise.reject(new Unavailable('postgresql', undefined)),
  )
  expect(away.ending).toMatchObject({ state: 'sent', provider: 'a' })
  const broken = settle([['a', 'unknown']], [gate('a', accepted)], () =>
    Promise.reject(new Error('a fault of ours')),
  )
  await expect(broken).rejects.toThrow('a fault of ours')
})
