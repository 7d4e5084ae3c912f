import { expect, test } from 'vitest'
import { createLog } from '../../src/base/log.ts'
import { Unavailable } from '../../src/base/unavailable.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { createDeliver } from '../../src/delivery/deliver.ts'
import type { GuardedProvider } from '../../src/delivery/guarded-provider.ts'
import type { Deferred } from '../../src/delivery/lines.ts'
import type { OpenNotice } from '../../src/notice/claim.ts'
import type { NoticeOutcome } from '../../src/notice/record.ts'
import type { NoticeStore } from '../../src/notice/store.ts'
import type { Templates } from '../../src/notice/templates.ts'
import type { SendResult } from '../../src/providers/provider.ts'
import { testMetrics } from '../tools/metrics.ts'

/** Here the table is the part that fails: what does a worker do while its outcomes are not written? */
const secrets = createSecrets('a secret of at least thirty-two bytes')
const log = createLog({ level: 'silent', process: 'test' })
const accepted: SendResult = { kind: 'accepted', messageId: 'm-1' }

function open(
  record: (outcome: NoticeOutcome) => Promise<boolean>,
  answer: SendResult | Deferred = accepted,
  slot?: Deferred,
) {
  const notice: OpenNotice = {
    id: '019aa000-0000-7000-8000-000000000000',
    app: 'shop',
    kind: 'captcha',
    channel: 'sms',
    recipient: '+8613800138000',
    scene: 'login',
    template: 'captcha',
    locale: 'en',
    sealedParams: secrets.seal('{}', '019aa000-0000-7000-8000-000000000000'),
    attempts: [],
    claims: 0,
    wantedAtMs: performance.now() - 1_000,
    ttlMs: 60_000,
    expiresAtMs: Date.now() + 60_000,
    hasPassed: false,
    retryInMs: 0,
    traceParent: null,
    format: 1,
    suppressions: null,
    verificationId: null,
  }
  let calls = 0
  const guarded: GuardedProvider = {
    name: 'a',
    kind: 'fake',
    channels: ['sms'],
    capacity: 1,
    async inTurn(_, { claim }) {
      if (answer.kind === 'deferred') return answer
      const stopped = await claim()
      if (stopped || slot) return stopped ?? (slot as Deferred)
      calls += 1
      return { kind: 'answered', result: answer, startedAt: new Date(), durationMs: 1 }
    },
    away: () => undefined,
    state: () => 'ready',
    postponesAll: () => false,
    stopWaiting() {},
  }
  const metrics = testMetrics()
  const store = {
    findOpen: async () => notice,
    claim: async () => ({ claims: 1, ttlMs: 60_000 }),
    record,
  } as unknown as NoticeStore
  const pauses = { longestRetryMs: 10_000, queryRetryMs: 5_000 }
  const retry = { tries: 3, unknownRetries: 1, ...pauses }
  const deliver = createDeliver({
    store,
    templates: { render: () => ({ text: 'text' }) } as unknown as Templates,
    providersFor: () => [guarded],
    resolveUnknown: async () => undefined,
    unseal: secrets.unseal,
    settleCode: async () => 'current',
    isRefused: () => false,
    retry: { captcha: retry, notice: retry },
    timeoutMs: 1_000,
    metrics,
    log,
  })
  return {
    run: () => deliver(notice.id),
    calls: () => calls,
    finished: async () =>
      (await metrics.finished.get()).values
        .filter(({ value }) => value > 0)
        .map(({ labels, value }) => `${labels.kind} ${labels.channel} ${labels.state} ${value}`),
    sentSeconds: async () =>
      Number(
        /postern_accepted_to_sent_seconds_sum\{[^}]*kind="captcha",channel="sms"[^}]*\} (.+)/.exec(
          await metrics.registry.metrics(),
        )?.[1],
      ),
  }
}

/** The same outcome each time. All but the first may be written already. */
function expectRepeats(written: readonly NoticeOutcome[]): void {
  const [first, ...others] = written
  expect(first).not.toHaveProperty('isRepeat')
  for (const other of others) expect(other).toEqual({ ...first, isRepeat: true })
}

test('PostgreSQL away after the call: written again until it is taken, and never called again (F12)', async () => {
  const written: NoticeOutcome[] = []
  const { run, calls, finished, sentSeconds } = open(async (outcome) => {
    written.push(outcome)
    if (written.length < 4) throw new Unavailable('postgresql', undefined)
    return true
  })
  expect(await run()).toEqual({ done: true })
  expect(calls()).toBe(1)
  expect(written).toHaveLength(4)
  expectRepeats(written)
  expect(written[0]).toMatchObject({ claims: 1, state: 'sent', provider: 'a' })
  expect(await finished()).toEqual(['captcha sms sent 1'])
  expect(await sentSeconds()).toBeGreaterThanOrEqual(1)
})

test('another worker has claimed it since: nothing is counted as finished, and the job has ended', async () => {
  for (const answer of [accepted, { kind: 'unavailable', detail: 'down' } as const]) {
    const { run, finished } = open(async () => false, answer)
    expect(await run()).toEqual({ done: true })
    expect(await finished()).toEqual([])
  }
})

test('what PostgreSQL does not take is written without the words of the far end; a fault of Postern is thrown', async () => {
  const written: NoticeOutcome[] = []
  const { run } = open(
    async (outcome) => {
      written.push(outcome)
      if (written.length === 1) throw new Error('invalid byte sequence')
      return true
    },
    { kind: 'invalid_recipient', detail: 'odd words' },
  )
  expect(await run()).toEqual({ done: true })
  expect(written[0]?.attempts).toMatchObject([{ detail: 'odd words' }])
  expect(written[1]?.attempts[0]).not.toHaveProperty('detail')
  expect(written[1]).toMatchObject({ state: 'failed', error: 'invalid_recipient' })
  const broken = open(() => Promise.reject(new Error('a fault of ours')))
  await expect(broken.run()).rejects.toThrow('a fault of ours')
})

test.for([
  ['unavailable', { kind: 'unavailable', detail: 'down' }],
  ['postponed', { kind: 'postponed', detail: 'greylisted' }],
  ['unknown', { kind: 'unknown', detail: 'the answer was lost' }],
] as const)(
  'PostgreSQL away after a call that came to %s: written again until it is taken, and nothing else is asked before',
  async ([outcome, answer]) => {
    const written: NoticeOutcome[] = []
    const { run, calls } = open(async (row) => {
      written.push(row)
      if (written.length < 4) throw new Unavailable('postgresql', undefined)
      return true
    }, answer)
    expect(await run()).toMatchObject({ done: false })
    expect(calls()).toBe(1)
    expect(written).toHaveLength(4)
    expectRepeats(written)
    expect(written[0]).toMatchObject({ claims: 1, state: 'pending', attempts: [{ outcome }] })
  },
)

test('PostgreSQL away when nothing was called: the pause need not be known, and is not waited for', async () => {
  let writes = 0
  const { run } = open(
    async () => {
      writes++
      throw new Unavailable('postgresql', undefined)
    },
    { kind: 'deferred', reason: 'circuit', retryInMs: 1_000 },
  )
  expect(await run()).toEqual({ done: false, retryInMs: 1_000 })
  expect(writes).toBe(1)
})

test('PostgreSQL away after a claim without a call: the pause is written, or the row would get an attempt', async () => {
  const written: NoticeOutcome[] = []
  const busy = { kind: 'deferred', reason: 'busy', retryInMs: 1_000 } as const
  const { run, calls } = open(
    async (row) => {
      written.push(row)
      if (written.length < 3) throw new Unavailable('postgresql', undefined)
      return true
    },
    accepted,
    busy,
  )
  expect(await run()).toEqual({ done: false, retryInMs: 1_000 })
  expect(calls()).toBe(0)
  expect(written).toHaveLength(3)
  expect(written[2]).toMatchObject({ claims: 1, state: 'pending', attempts: [] })
})
