import { createServer } from 'node:http'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { createGuardedProvider, type Wish } from '../../src/delivery/guarded-provider.ts'
import type { Deferred } from '../../src/delivery/lines.ts'
import type { AcquireSendPermit } from '../../src/delivery/provider-limits.ts'
import type { Message, Provider, SendResult } from '../../src/providers/provider.ts'
import { beBusy } from '../tools/be-busy.ts'
import { listen } from '../tools/listen.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const accepted: SendResult = { kind: 'accepted' }

function messageTo(to: string, variables: Message['variables'] = {}): Message {
  return {
    noticeId: `notice for ${to}`,
    channel: 'sms',
    to,
    template: 'welcome',
    locale: 'en',
    variables,
    text: 'Hello',
  }
}

const withdrawn = { kind: 'withdrawn' } as const

function open(
  send: (message: Message, signal: AbortSignal) => Promise<SendResult>,
  more: Partial<Provider> & {
    acquireSendPermit?: AcquireSendPermit
    timeoutMs?: number
    answerTimeoutMs?: number
    isOwnKind?: boolean
    onPostponing?: (isNearlyAll: boolean) => void
  } = {},
) {
  const {
    acquireSendPermit = async () => ({ granted: true, release: async () => {} }),
    timeoutMs = 60_000,
    answerTimeoutMs = 0,
    isOwnKind = false,
    onPostponing = () => {},
    ...rest
  } = more
  const circuit: boolean[] = []
  const faults: unknown[] = []
  /** The recipients of its calls. */
  const calls: string[] = []
  const call = (...asked: Parameters<Provider['send']>) => {
    calls.push(asked[0].to)
    return (rest.send ?? send)(...asked)
  }
  const common = { name: 'a', kind: 'fake', channels: ['sms'] as const, slots: 2, async close() {} }
  const guarded = createGuardedProvider(
    { ...common, ...rest, send: call },
    {
      acquireSendPermit,
      timeoutMs,
      answerTimeoutMs,
      isOwnKind,
      onPostponing,
      onCircuit: (isOpen) => circuit.push(isOpen),
      onFault: (_, error) => faults.push(error),
    },
  )
  releaseLater(() => guarded.stopWaiting())
  async function sendTo(
    to: string,
    {
      ttlMs = 60_000,
      ...more
    }: Partial<Omit<Wish<typeof withdrawn>, 'ttlMs'>> & { ttlMs?: number } = {},
    variables: Message['variables'] = {},
  ): Promise<SendResult | Deferred | typeof withdrawn> {
    const endMs = performance.now() + ttlMs
    const end = await guarded.inTurn<typeof withdrawn>(messageTo(to, variables), {
      isUrgent: false,
      hasOther: false,
      ttlMs: () => endMs - performance.now(),
      claim: async () => undefined,
      ...more,
    })
    return end.kind === 'answered' ? end.result : end
  }
  return { guarded, sendTo, circuit, faults, calls }
}

/** The same, whose calls end when the test frees them. */
function openBlocked(more: Parameters<typeof open>[1]) {
  const { promise, resolve: free } = Promise.withResolvers<SendResult>()
  return { ...open(() => promise, more), free }
}

/** A send of so many milliseconds, and the most of them that were under way at once. */
function slowSend(ms: number) {
  const [seen, most] = [{ underWay: 0, most: 0 }, () => seen.most]
  const send = async () => {
    seen.most = Math.max(seen.most, ++seen.underWay)
    await new Promise((resolve) => setTimeout(resolve, ms))
    seen.underWay--
    return accepted
  }
  return { send, most }
}

const throttled = { kind: 'throttled', retryAfterMs: 60_000, detail: 'slowly' } as const

test('too fast: the provider is left alone for as long as it asks, by everyone', async () => {
  const { sendTo } = open(async () => throttled)
  expect(await sendTo('one')).toEqual(throttled)
  const held = await sendTo('other')
  expect(held).toMatchObject({ kind: 'deferred', reason: 'paused' })
  expect((held as { retryInMs: number }).retryInMs).toBeGreaterThan(59_000)
})

test('one recipient is postponed, again and again: everyone else is still sent to (I30)', async () => {
  const { sendTo, circuit } = open(async ({ to }) =>
    to === 'capped' ? { kind: 'postponed', retryAfterMs: 60_000, detail: 'a cap' } : accepted,
  )
  for (let call = 0; call < 10; call++) {
    expect(await sendTo('capped')).toMatchObject({ kind: 'postponed' })
  }
  expect(circuit).toEqual([])
  expect(await sendTo('other')).toEqual(accepted)
})

test('a burst of 60 postponed recipients beside good ones: no call waits, the share is reported and ends with the next good ones (I30)', async () => {
  const postponing: boolean[] = []
  const { guarded, sendTo, circuit } = open(
    async ({ to }) => (to.startsWith('bad') ? { kind: 'postponed', detail: 'a cap' } : accepted),
    { slots: 5, onPostponing: (isNearlyAll) => postponing.push(isNearlyAll) },
  )
  for (let bad = 0; bad < 60; bad++) {
    await sendTo(`bad${bad}`)
    if (bad % 12 === 0) expect(await sendTo(`good${bad}`)).toEqual(accepted)
  }
  expect([postponing, guarded.postponesAll(), circuit]).toEqual([[true], true, []])
  for (let good = 0; good < 3; good++) expect(await sendTo(`good${good}`)).toEqual(accepted)
  expect([postponing, guarded.postponesAll()]).toEqual([[true, false], false])
})

test('recipients whose answers never come, of a far end that shows that it lives: no breaker counts it (I30)', async () => {
  const { sendTo, circuit } = open(async () => accepted, {
    send: async ({ to }, _signal, onAlive) => {
      if (to === 'good') return accepted
      onAlive?.()
      // Longer than the time after which the circuit counts a call as slow.
      await new Promise((resolve) => setTimeout(resolve, 1_800))
      return { kind: 'postponed', detail: 'no answer in time' }
    },
  })
  await Promise.all([sendTo('silent'), sendTo('silent')])
  expect(circuit).toEqual([])
  expect(await sendTo('good')).toEqual(accepted)
})

test('the process stands still for longer than a call may take, and the answer has arrived: it is read, and the breaker stays closed (F23)', async () => {
  const url = await listen(createServer((_, response) => response.end('', () => beBusy(2_000))))
  const unknown: SendResult = { kind: 'unknown', detail: 'aborted' }
  const { sendTo, circuit } = open(async () => accepted, {
    slots: 1,
    timeoutMs: 1_000,
    send: (_, signal) =>
      fetch(url, { signal }).then(
        () => accepted,
        () => unknown,
      ),
  })
  expect(await sendTo('one')).toEqual(accepted)
  expect(circuit).toEqual([])
})

test('a call ends with its message, although it may take longer (I7)', async () => {
  const { sendTo } = open(async () => accepted, {
    send: async (_, signal) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      return { kind: 'unknown', detail: 'aborted' }
    },
  })
  expect(await sendTo('late', { ttlMs: 50 })).toMatchObject({ kind: 'unknown' })
})

test('no more calls at once than the provider carries, each with its own clock from its beginning', async () => {
  const begun: number[] = []
  const { send, most } = slowSend(50)
  // Shorter than the wait of the last call, and longer than one call.
  const { sendTo } = open(send, { timeoutMs: 150 })
  const claim = async () => void begun.push(performance.now())
  const results = await Promise.all(
    Array.from({ length: 12 }, (_, index) => sendTo(`${index}`, { claim })),
  )
  expect(results).toEqual(Array(12).fill(accepted))
  expect(most()).toBe(2)
  expect(Math.max(...begun) - Math.min(...begun)).toBeGreaterThan(150)
})

test('bulk notices are claimed ahead of their call, as many as may be: a code is still claimed at once', async () => {
  const { sendTo, free } = openBlocked({ slots: 5 })
  const claimed: string[] = []
  const claimOf = (to: string) => ({ claim: async () => void claimed.push(to) })
  const bulk = Array.from({ length: 10 }, (_, at) => sendTo(`${at}`, claimOf(`${at}`)))
  await eventually(() => claimed.length === 7)
  const code = sendTo('code', { ...claimOf('code'), isUrgent: true })
  await new Promise(setImmediate)
  expect(claimed).toContain('code')
  free(accepted)
  await Promise.all([...bulk, code])
})

test('a long text takes the slots of its parts', async () => {
  const { send, most } = slowSend(20)
  const { sendTo } = open(send, { slots: 4, slotsFor: ({ to }) => (to === 'long' ? 3 : 1) })
  await Promise.all([sendTo('long'), sendTo('long'), sendTo('long')])
  expect(most()).toBe(1)
})

test('above the limit of the provider: no call, the message comes back at the time of the limit, and its slot is free', async () => {
  const { sendTo, calls } = open(async () => accepted, {
    slots: 1,
    acquireSendPermit: async (_, to) =>
      to === 'early'
        ? { granted: false, reason: 'pace', retryInMs: 700 }
        : { granted: true, release: async () => {} },
  })
  expect(await sendTo('early')).toEqual({ kind: 'deferred', reason: 'pace', retryInMs: 700 })
  expect(await sendTo('other')).toEqual(accepted)
  expect(calls).toEqual(['other'])
})

test('withdrawn at the last moment: no call, the pace and the slots are given back', async () => {
  let given = 0
  const { sendTo, calls } = open(async () => accepted, {
    slots: 1,
    acquireSendPermit: async () => ({ granted: true, release: async () => void given++ }),
  })
  expect(await sendTo('one', { claim: async () => withdrawn })).toEqual(withdrawn)
  const broken = { claim: () => Promise.reject(new Error('the claim failed')) }
  await expect(sendTo('two', broken)).rejects.toThrow('the claim failed')
  expect([given, calls]).toEqual([2, []])
  expect(await sendTo('three')).toEqual(accepted)
  expect([given, calls]).toEqual([2, ['three']])
})

test.each([
  ['accepted', accepted, []],
  ['unknown', { kind: 'unknown', detail: 'lost' }, []],
  ['rejected', { kind: 'rejected', detail: 'no' }, []],
  ['throttled', { kind: 'throttled', retryAfterMs: 60_000, detail: 'slowly' }, ['quota']],
  ['postponed', { kind: 'postponed', detail: 'later' }, ['quota']],
  ['unavailable', { kind: 'unavailable', detail: 'down' }, [undefined]],
] as [string, SendResult, unknown[]][])(
  '%s: what the message used of the limits is given back if the provider did not accept it',
  async (_, answer, given) => {
    const released: unknown[] = []
    const release = async (only?: 'quota') => void released.push(only)
    const { sendTo } = open(async () => answer, {
      acquireSendPermit: async () => ({ granted: true, release }),
    })
    await sendTo('one')
    expect(released).toEqual(given)
  },
)

test('the provider dies while messages wait: those that have another provider are let go at once, the others stay', async () => {
  const { sendTo, circuit, free } = openBlocked({ slots: 1 })
  const hung = sendTo('hung')
  const results: string[] = []
  const note = (name: string) => (result: { kind: string }) =>
    results.push(`${name} ${result.kind}`)
  void sendTo('mobile', { hasOther: true }).then(note('mobile'))
  const patient = sendTo('patient').then(note('patient'))
  await eventually(() => circuit.length === 1)
  await eventually(() => results.length === 1)
  expect(results).toEqual(['mobile deferred'])
  free({ kind: 'unavailable', detail: 'at last' })
  await Promise.all([hung, patient])
  expect(results).toEqual(['mobile deferred', 'patient deferred'])
})

test('a provider that throws, answers no value of Postern or never ends: unknown, and its slot is free', async () => {
  const answers = [
    () => Promise.reject(new Error('a fault')),
    async () => ({ kind: 'ok' }) as never,
    () => new Promise<SendResult>(() => {}),
    async () => accepted,
  ]
  const { sendTo, faults } = open(() => answers.shift()?.() ?? Promise.resolve(accepted), {
    slots: 1,
    timeoutMs: 10,
  })
  const results = await Promise.all(['a', 'b', 'c', 'd'].map((to) => sendTo(to)))
  const kinds = results.map(({ kind }) => kind)
  expect(kinds).toEqual(['unknown', 'unknown', 'unknown', 'accepted'])
  expect(faults).toHaveLength(2)
})

test('a question about an earlier message goes over the same connections: it waits for a slot too', async () => {
  const times = { timeoutMs: 50, answerTimeoutMs: 60_000 }
  const { guarded, sendTo, free } = openBlocked({ slots: 1, ...times, query: async () => accepted })
  const sending = sendTo('one')
  await new Promise(setImmediate)
  const sent = { noticeId: 'n', to: 'one', sentAt: 0 }
  expect(await guarded.query?.(sent)).toMatchObject({ kind: 'unknown' })
  const asked = guarded.query?.(sent)
  free(accepted)
  await sending
  expect(await asked).toEqual(accepted)
})

test('the provider asks for a pause while a message waits for its slot: that one is held, not called', async () => {
  const { send } = slowSend(20)
  const { sendTo, calls } = open(() => send().then(() => throttled), { slots: 1 })
  const [first, second] = await Promise.all([sendTo('one'), sendTo('two')])
  expect(first).toMatchObject({ kind: 'throttled' })
  expect(second).toMatchObject({ kind: 'deferred', reason: 'paused' })
  expect(calls).toEqual(['one'])
})

describe('a provider that is known to be fast', () => {
  /** A hundred quick calls, then two that hang and keep both slots. */
  async function busy(more: Parameters<typeof open>[1] = {}) {
    const ends: ((result: SendResult) => void)[] = []
    const opened = open(
      async ({ to }) => (to === 'quick' ? accepted : new Promise((end) => ends.push(end))),
      more,
    )
    const { calls } = opened
    for (let call = 0; call < 100; call++) await opened.sendTo('quick')
    calls.length = 0
    const hung = [opened.sendTo('a'), opened.sendTo('b')]
    await eventually(() => calls.length === 2)
    releaseLater(() => {
      for (const end of ends) end(accepted)
      return Promise.all(hung)
    })
    return { ...opened, end: (result: SendResult) => ends.shift()?.(result) }
  }
  /** A code that has just been claimed, and waits for a slot: no time has passed since its wait began. */
  async function claimed(sendTo: ReturnType<typeof open>['sendTo'], ttlMs = 60_000) {
    const { promise: isClaimed, resolve } = Promise.withResolvers<undefined>()
    const claim = () => {
      resolve(undefined)
      return isClaimed
    }
    const sent = sendTo('c', { isUrgent: true, ttlMs, claim })
    await isClaimed
    for (let turn = 0; turn < 10; turn++) await undefined
    return { sent }
  }

  test('the next message has its turn before a slot is free, and its call when one is', async () => {
    // A message that had its turn gives it back after 250 ms.
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] })
    const { sendTo, calls, end } = await busy()
    let isClaimed = false
    const claim = async () => {
      isClaimed = true
      return undefined
    }
    const next = sendTo('c', { claim })
    await eventually(() => isClaimed)
    expect(calls).toEqual(['a', 'b'])
    end(accepted)
    await eventually(() => calls.length === 3)
    end(accepted)
    end(accepted)
    expect(await next).toEqual(accepted)
  })

  test.for([
    ['no slot comes', () => {}, 'busy'],
    ['the provider asks for a pause', (end) => end(throttled), 'paused'],
    [
      'the process stands still, and then a slot is free (F23)',
      (end) => {
        end(accepted)
        beBusy(300)
      },
      'busy',
    ],
    ['the process ends', (_, { stopWaiting }) => stopWaiting(), 'busy'],
  ] as [
    string,
    (end: (result: SendResult) => void, guarded: { stopWaiting(): void }) => void,
    string,
  ][])(
    '%s: the one that had its turn is not called, and gives back what it took',
    async ([, strike, reason]) => {
      let given = 0
      const release = async (only?: 'quota') => {
        if (!only) given++
      }
      const { guarded, sendTo, calls, end } = await busy({
        acquireSendPermit: async () => ({ granted: true, release }),
      })
      const { sent } = await claimed(sendTo)
      strike(end, guarded)
      expect(await sent).toMatchObject({ kind: 'deferred', reason })
      expect(given).toBe(1)
      expect(calls).toEqual(['a', 'b'])
    },
  )

  test('its calls hang: the breaker keeps away one that had its turn', async () => {
    const { sendTo, circuit } = await busy()
    const claim = async () => {
      await eventually(() => circuit.length === 1)
      return undefined
    }
    const sent = sendTo('c', { isUrgent: true, claim })
    expect(await sent).toMatchObject({ kind: 'deferred', reason: 'circuit' })
  })

  test('the end of the message comes before a slot: it is not called (I7)', async () => {
    const { sendTo, calls, end } = await busy()
    const { sent } = await claimed(sendTo, 100)
    beBusy(110)
    end(accepted)
    expect(await sent).toMatchObject({ kind: 'deferred' })
    expect(calls).toEqual(['a', 'b'])
  })
})

const down = { kind: 'unavailable', detail: 'down' } as const

describe('its breaker is open', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] }))

  async function broken() {
    let answer: SendResult = down
    const opened = open(async () => answer)
    for (let call = 0; call < 5; call++) await opened.sendTo('early')
    expect(opened.circuit).toEqual([true])
    opened.calls.length = 0
    return { ...opened, say: (next: SendResult) => (answer = next) }
  }

  test('the calls it skips come back one after the other, codes in a separate line', async () => {
    const { sendTo } = await broken()
    const waits: number[] = []
    for (let message = 0; message < 100; message++) {
      const held = await sendTo('late')
      expect(held).toMatchObject({ kind: 'deferred', reason: 'circuit' })
      waits.push((held as { retryInMs: number }).retryInMs)
    }
    expect(waits[0]).toBe(3_000)
    for (const [index, waitMs] of waits.entries()) expect(waitMs).toBeCloseTo(3_000 + index * 20)
    const code = await sendTo('late', { isUrgent: true })
    expect(code).toMatchObject({ reason: 'circuit', retryInMs: 3_000 })
  })

  test('however many wait, a notice comes back within 50 s of the next probe, a code within 30 s', async () => {
    const { guarded } = await broken()
    const latest = (isUrgent: boolean) => {
      let waitMs = 0
      for (let message = 0; message < 10_000; message++) {
        waitMs = guarded.away(isUrgent)?.retryInMs ?? 0
      }
      return waitMs
    }
    expect([latest(false), latest(true)]).toEqual([53_000, 33_000])
  })

  test('the probe is withdrawn, or fails before its call: the next message is the probe, and closes it', async () => {
    const { sendTo, calls, circuit, say } = await broken()
    await vi.advanceTimersByTimeAsync(3_000)
    expect(await sendTo('gone', { claim: async () => withdrawn })).toEqual(withdrawn)
    const failing = { claim: () => Promise.reject(new Error('the claim failed')) }
    await expect(sendTo('gone', failing)).rejects.toThrow('the claim failed')
    expect(calls).toEqual([])
    say(accepted)
    expect(await sendTo('next')).toEqual(accepted)
    expect(circuit).toEqual([true, false])
  })

  test('the probe is put off for its recipient: the provider has answered, so it closes', async () => {
    const { sendTo, circuit, say } = await broken()
    await vi.advanceTimersByTimeAsync(3_000)
    say({ kind: 'postponed', detail: 'greylisted' })
    expect(await sendTo('later')).toMatchObject({ kind: 'postponed' })
    expect(circuit).toEqual([true, false])
  })
})

test('the provider asked for a pause: the messages that it keeps waiting come back one after the other, not all when it ends', async () => {
  const { sendTo, guarded } = open(async () => throttled)
  await sendTo('one')
  const waits = Array.from({ length: 100 }, () => guarded.away(false)?.retryInMs ?? 0)
  expect(waits[0]).toBeGreaterThan(59_000)
  for (const [index, waitMs] of waits.entries()) {
    if (index > 0) expect(waitMs - (waits[index - 1] as number)).toBeGreaterThan(10)
  }
})

describe('an answer that comes after the time limit', () => {
  /** A provider that answers late, or ends without an answer at its signal. */
  const late = (answer: Promise<SendResult>) => (_: Message, signal: AbortSignal) => {
    const ended = new Promise<SendResult>((resolve) => {
      signal.addEventListener('abort', () => resolve({ kind: 'unknown', detail: 'no answer' }))
    })
    return Promise.race([answer, ended])
  }
  const timeoutMs = 20

  test('within the time for late answers: it counts', async () => {
    const { promise, resolve: answer } = Promise.withResolvers<SendResult>()
    const { guarded, sendTo } = open(late(promise), { timeoutMs, answerTimeoutMs: 600_000 })
    const sent = sendTo('one', { ttlMs: 700_000 })
    // Longer than the limit, whose end the provider would notice.
    await new Promise((resolve) => setTimeout(resolve, 80))
    answer(accepted)
    expect(await sent).toEqual(accepted)
    expect(guarded.state()).toBe('ready')
  })

  test('the worker stops: its time limit ends the call', async () => {
    const { guarded, sendTo } = open(late(new Promise(() => {})), {
      timeoutMs,
      answerTimeoutMs: 600_000,
    })
    const sent = sendTo('one', { ttlMs: 700_000 })
    await new Promise((resolve) => setTimeout(resolve, 40))
    guarded.stopWaiting()
    expect(await sent).toMatchObject({ kind: 'unknown' })
  })

  test('without such a time: the limit ends the call', async () => {
    const { sendTo } = open(late(new Promise(() => {})), { timeoutMs })
    expect(await sendTo('one')).toMatchObject({ kind: 'unknown' })
  })
})

test.for([
  ['a variable that is a word of the reason', 'twilio HTTP 500', { name: 'http' }],
  ['a code of four digits in the number of an error', 'twilio 21610', { code: '2161' }],
] as const)(
  'a kind of Postern, %s: nothing is hidden, except in the reason of another kind',
  async ([, detail, variables]) => {
    const send = async (): Promise<SendResult> => ({ kind: 'rejected', detail })
    const detailBy = async (isOwnKind: boolean) => {
      const { sendTo } = open(send, { isOwnKind })
      return sendTo('+8613800138000', {}, variables)
    }
    expect(await detailBy(true)).toEqual({ kind: 'rejected', detail })
    expect(await detailBy(false)).not.toEqual({ kind: 'rejected', detail })
  },
)

test('throttled for an hour: what waits comes back within a minute, because another provider may have joined its route', async () => {
  const { sendTo } = open(async () => ({ ...throttled, retryAfterMs: 3_600_000 }))
  await sendTo('one')
  for (const to of ['two', 'three']) {
    const held = await sendTo(to)
    expect(held).toMatchObject({ kind: 'deferred', reason: 'paused' })
    expect((held as { retryInMs: number }).retryInMs).toBeLessThanOrEqual(60_000)
  }
})

test('two calls under way are throttled: the latest end holds, in either order of the answers', async () => {
  for (const waits of [
    [50_000, 20_000],
    [20_000, 50_000],
  ]) {
    const answers: (() => void)[] = []
    const { sendTo } = open(
      () =>
        new Promise((resolve) => {
          const retryAfterMs = waits[answers.length] ?? 0
          answers.push(() => resolve({ ...throttled, retryAfterMs }))
        }),
    )
    const both = [sendTo('one'), sendTo('two')]
    await eventually(() => answers.length === 2)
    for (const answer of answers) answer()
    await Promise.all(both)
    const held = await sendTo('three')
    expect((held as { retryInMs: number }).retryInMs).toBeGreaterThan(45_000)
  }
})

test('calls without an answer hold all connections: while the circuit is open, no message waits for one of them, although a probe is due', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'performance'] })
  const answers: (() => void)[] = []
  const send = () => new Promise<SendResult>((resolve) => answers.push(() => resolve(accepted)))
  const { sendTo, circuit } = open(send, { answerTimeoutMs: 600_000 })
  const held = [sendTo('one', { ttlMs: 900_000 }), sendTo('two', { ttlMs: 900_000 })]
  await vi.advanceTimersByTimeAsync(2_000)
  expect(circuit).toEqual([true])
  await vi.advanceTimersByTimeAsync(10_000)
  for (const hasOther of [true, false]) {
    const sent = sendTo('three', { hasOther, ttlMs: 900_000 })
    await vi.advanceTimersByTimeAsync(1_000)
    expect(await Promise.race([sent, 'waits'])).toMatchObject({ reason: 'circuit' })
  }
  for (const answer of answers) answer()
  expect(await Promise.all(held)).toEqual([accepted, accepted])
  expect(circuit).toEqual([true, false])
})

test('a use of the limits is given back slowly: the slot of the call is free meanwhile', async () => {
  const { promise: isBack, resolve: giveBack } = Promise.withResolvers<void>()
  const { sendTo } = open(async ({ to }) => (to === 'first' ? down : accepted), {
    slots: 1,
    acquireSendPermit: async (_, to) => ({
      granted: true,
      release: async () => (to === 'first' ? isBack : undefined),
    }),
  })
  // A provider that is known to be fast has its next message claimed during a call.
  for (let call = 0; call < 100; call++) await sendTo('quick')
  const first = sendTo('first')
  expect(await sendTo('second')).toEqual(accepted)
  giveBack()
  expect(await first).toEqual(down)
})
