import { beforeEach, expect, test, vi } from 'vitest'
import { createCircuit, type Passage } from '../../src/delivery/circuit.ts'
import type { SendResult } from '../../src/providers/provider.ts'

beforeEach(() => void vi.useFakeTimers())
const accepted: SendResult = { kind: 'accepted' }
const unavailable: SendResult = { kind: 'unavailable', detail: 'no' }

/** The time after which a call is slow: 1.5 s, and five turns of the event loop, which fake timers count as 1 ms each. */
const slowMs = 1_505

/**
 * A call that gets this result after this time, and shows before that the provider is alive. Undefined if the circuit
 * did not allow it.
 */
function callThrough(
  passage: Passage | undefined,
  result: SendResult,
  afterMs: number,
  aliveAfterMs?: number,
): Promise<void> | undefined {
  const called = passage?.call((onAlive) => {
    if (aliveAfterMs !== undefined) setTimeout(onAlive, aliveAfterMs)
    return new Promise((resolve) => setTimeout(() => resolve(result), afterMs))
  })
  return called?.then(() => {})
}

function open(slots = 100) {
  const changes: boolean[] = []
  const circuit = createCircuit(slots, (isOpen) => changes.push(isOpen))
  /** A call that gets this result after this time. Undefined if the circuit did not allow it. */
  const call = (result: SendResult, afterMs = 0) => callThrough(circuit.enter(), result, afterMs)
  return { changes, circuit, call }
}

async function fail(call: ReturnType<typeof open>['call'], times = 5) {
  for (let time = 0; time < times; time++) {
    const one = call(unavailable)
    await vi.advanceTimersByTimeAsync(1)
    await one
  }
}

test('circuit: five failures in a row open it, four do not, and a good answer between starts anew', async () => {
  const { changes, circuit, call } = open()
  await fail(call, 4)
  const good = call(accepted)
  await vi.advanceTimersByTimeAsync(1)
  await good
  await fail(call, 4)
  expect(changes).toEqual([])
  expect(circuit.openRetryMs()).toBe(0)
  await fail(call, 1)
  expect(changes).toEqual([true])
  const openRetryMs = circuit.openRetryMs()
  expect(openRetryMs).toBeGreaterThan(2_900)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(circuit.openRetryMs()).toBe(openRetryMs - 1_000)
  expect(circuit.enter()).toBe(undefined)
})

test('circuit: a dead provider is probed every 3 s, by one call at a time, and its state is reported once (34)', async () => {
  const { changes, circuit, call } = open()
  await fail(call)
  for (let probe = 0; probe < 5; probe++) {
    await vi.advanceTimersByTimeAsync(3_000)
    const one = call(unavailable, 100)
    expect(one).toBeDefined()
    expect(circuit.enter()).toBe(undefined)
    expect(circuit.openRetryMs()).toBeGreaterThan(0)
    await vi.advanceTimersByTimeAsync(100)
    await one
  }
  expect(changes).toEqual([true])
  await vi.advanceTimersByTimeAsync(3_000)
  const good = call(accepted)
  await vi.advanceTimersByTimeAsync(1)
  await good
  expect(changes).toEqual([true, false])
  expect(circuit.openRetryMs()).toBe(0)
  // The probe took a moment. So calls that hang are noticed as soon as at the start.
  const hung = Array.from({ length: 5 }, () => call(unavailable, 2_000))
  await vi.advanceTimersByTimeAsync(slowMs)
  expect(changes).toEqual([true, false, true])
  await vi.advanceTimersByTimeAsync(500)
  await Promise.all(hung)
})

test('circuit: a probe is judged by its real answer, however late (F29)', async () => {
  const { changes, call } = open()
  await fail(call)
  await vi.advanceTimersByTimeAsync(3_000)
  const probe = call(accepted, 4_000)
  await vi.advanceTimersByTimeAsync(3_999)
  expect(changes).toEqual([true])
  await vi.advanceTimersByTimeAsync(1)
  await probe
  expect(changes).toEqual([true, false])
})

test('circuit: a probe that was given up lets the next one through', async () => {
  const { circuit, call } = open()
  await fail(call)
  await vi.advanceTimersByTimeAsync(3_000)
  circuit.enter()?.giveUp()
  expect(circuit.enter()).toBeDefined()
})

test('circuit: five calls without an answer for 1.5 s open it, and a late good answer closes it (F15, F29)', async () => {
  const { changes, call } = open()
  const calls = Array.from({ length: 5 }, () => call(accepted, 2_000))
  await vi.advanceTimersByTimeAsync(1_499)
  expect(changes).toEqual([])
  await vi.advanceTimersByTimeAsync(slowMs - 1_499)
  expect(changes).toEqual([true])
  await vi.advanceTimersByTimeAsync(500)
  await Promise.all(calls)
  expect(changes).toEqual([true, false])
})

test('circuit: a provider known to take 2 s is kept in use, and noticed when it hangs (F29)', async () => {
  const { changes, call } = open()
  for (let round = 0; round < 3; round++) {
    const calls = Array.from({ length: 10 }, () => call(accepted, 2_000))
    await vi.advanceTimersByTimeAsync(2_000)
    await Promise.all(calls)
  }
  expect(changes).toEqual([true, false])
  const hung = Array.from({ length: 10 }, () => call(unavailable, 6_000))
  await vi.advanceTimersByTimeAsync(4_005)
  expect(changes).toEqual([true, false, true])
  await vi.advanceTimersByTimeAsync(2_000)
  await Promise.all(hung)
})

const postponed: SendResult = { kind: 'postponed', detail: 'no answer in time' }

/** A call whose provider shows after this time that it is alive, and answers later. */
function aliveAfter(
  circuit: ReturnType<typeof open>['circuit'],
  aliveMs: number,
  answerTimeoutMs: number,
) {
  return callThrough(circuit.enter(), postponed, answerTimeoutMs, aliveMs)
}

test('circuit: a far end that shows that it lives is not overdue, and its silence is not its usual time (I30)', async () => {
  const { changes, circuit, call } = open(5)
  const silent = Array.from({ length: 5 }, () => aliveAfter(circuit, 800, 5_000))
  await vi.advanceTimersByTimeAsync(5_000)
  await Promise.all(silent)
  expect(changes).toEqual([])
  // A dead provider is noticed as soon as at the start.
  const hung = Array.from({ length: 5 }, () => call(unavailable, 5_000))
  await vi.advanceTimersByTimeAsync(slowMs)
  expect(changes).toEqual([true])
  await vi.advanceTimersByTimeAsync(3_500)
  await Promise.all(hung)
})

test('circuit: a sign of life that comes late closes it, in a call as in a probe', async () => {
  const { changes, circuit, call } = open(5)
  const silent = Array.from({ length: 5 }, () => aliveAfter(circuit, 2_000, 5_000))
  await vi.advanceTimersByTimeAsync(slowMs)
  expect(changes).toEqual([true])
  await vi.advanceTimersByTimeAsync(500)
  expect(changes).toEqual([true, false])
  await vi.advanceTimersByTimeAsync(3_000)
  await Promise.all(silent)
  // Overdue calls that were excused no longer count.
  const one = call(unavailable, 2_000)
  await vi.advanceTimersByTimeAsync(2_000)
  await one
  expect(changes).toEqual([true, false])
  await fail(call)
  await vi.advanceTimersByTimeAsync(3_000)
  const probe = aliveAfter(circuit, 1_000, 5_000)
  await vi.advanceTimersByTimeAsync(1_000)
  expect(changes).toEqual([true, false, true, false])
  await vi.advanceTimersByTimeAsync(4_000)
  await probe
})

test('circuit: with two slots, both of them hanging open it; one does not', async () => {
  const { changes, circuit, call } = open(2)
  // Earlier good calls do not outweigh calls that hang.
  const good = Array.from({ length: 3 }, () => aliveAfter(circuit, 1, 2))
  await vi.advanceTimersByTimeAsync(2)
  await Promise.all(good)
  const calls = [call(unavailable, 5_000)]
  await vi.advanceTimersByTimeAsync(slowMs)
  expect(changes).toEqual([])
  calls.push(call(unavailable, 3_500))
  await vi.advanceTimersByTimeAsync(slowMs)
  expect(changes).toEqual([true])
  await vi.advanceTimersByTimeAsync(2_000)
  await Promise.all(calls)
})

test('circuit: after a probe that failed the next one waits its time, from its end', async () => {
  const { circuit, call } = open()
  await fail(call)
  await vi.advanceTimersByTimeAsync(3_000)
  const probe = call(unavailable, 1_000)
  await vi.advanceTimersByTimeAsync(1_000)
  await probe
  expect(circuit.openRetryMs()).toBeGreaterThan(2_900)
  expect(circuit.enter()).toBe(undefined)
  await vi.advanceTimersByTimeAsync(2_900)
  expect(circuit.enter()).toBe(undefined)
})

test.each([
  ['unavailable', true],
  ['unknown', true],
  ['rejected', false],
  ['invalid_recipient', false],
  ['throttled', false],
  ['postponed', false],
  ['accepted', false],
] as const)('circuit: five times %s → open: %s', async (kind, isOpen) => {
  const { changes, call } = open()
  for (let time = 0; time < 5; time++) {
    const one = call({ kind, detail: 'x', retryAfterMs: 1 } as SendResult)
    await vi.advanceTimersByTimeAsync(1)
    await one
  }
  expect(changes).toEqual(isOpen ? [true] : [])
})

test('circuit: a call that was overdue and then failed is one failure, not two', async () => {
  const { changes, call } = open()
  const slow = [call(unavailable, 2_000), call(unavailable, 2_000)]
  await vi.advanceTimersByTimeAsync(2_000)
  await Promise.all(slow)
  await fail(call, 2)
  expect(changes).toEqual([])
  await fail(call, 1)
  expect(changes).toEqual([true])
})

test('circuit: a probe without an answer for 5 s no longer keeps the next one away, and its late good answer closes the circuit', async () => {
  const { changes, circuit, call } = open()
  await fail(call)
  await vi.advanceTimersByTimeAsync(3_001)
  const late = call(accepted, 20_000)
  expect(late).toBeDefined()
  await vi.advanceTimersByTimeAsync(4_000)
  expect(circuit.enter()).toBe(undefined)
  await vi.advanceTimersByTimeAsync(4_100)
  const next = call(unavailable, 10)
  expect(next).toBeDefined()
  await vi.advanceTimersByTimeAsync(12_000)
  await Promise.all([late, next])
  expect(changes).toEqual([true, false])
  await fail(call, 4)
  expect(changes).toEqual([true, false])
})
