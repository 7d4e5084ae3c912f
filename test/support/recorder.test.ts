/** The bounds of the recorder, with a table that only remembers its rows, and a clock of the test. */
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { type Decision, parsePolicies, type Refusal } from '../../src/limiter/index.ts'
import type { CheckResult, Noted } from '../../src/support/decision.ts'
import { createRecorder } from '../../src/support/recorder.ts'
import { releaseLater } from '../tools/release.ts'

beforeEach(() => void vi.useFakeTimers())

const parsed = parsePolicies({
  captcha: [
    { name: 'recipient', key: '{app}:{channel}:{to}', sliding: '1 per 60s' },
    { name: 'ip', key: '{app}:{ip}', sliding: '60 per 10m' },
  ],
})
if (!parsed.ok) throw new Error('policies')
const { policies } = parsed
const secrets = createSecrets('the first secret, of thirty-two bytes or more')
const admission: Decision = { admitted: true, remaining: [], nextInMs: 0 }
const refusal = (rule: string): Refusal => ({
  ...{ admitted: false, rule, window: '60s', limit: 1, windowMs: 60_000, kind: 'sliding' },
  retryAfterMs: 59_000,
})
const person = { app: 'shop', channel: 'sms', to: '+8613800138000' } as const
const numberOf = (at: number) => `+86138${10_000_000 + at}`

function open() {
  const rows: Noted[] = []
  const dropped = { history: 0, sums: 0 }
  const failures: unknown[] = []
  let answer: () => Promise<void> = async () => {}
  const recorder = createRecorder({
    log: {
      async write(noted) {
        await answer()
        rows.push(...noted)
      },
    },
    secrets,
    policies: () => policies,
    onDropped: (record, decisions) => {
      dropped[record] += decisions
    },
    onFailed: (error) => failures.push(error),
  })
  releaseLater(() => recorder.close())
  let ids = 0
  function decide(to: string, decision: Decision = admission, app = 'shop', policy = 'captcha') {
    ids += 1
    const fields = { app, channel: 'sms', to, ip: `192.0.2.${ids % 250}`, mailbox: to }
    const requestId = `r${ids}`
    recorder.decided({ policy, fields, requestId, decision, isSolved: true })
    return { fields, requestId }
  }
  const check = (to: string, result: CheckResult, id = `c${++ids}`) =>
    recorder.checked({ ...person, to }, id, { result })
  const timesOf = (of: readonly Noted[]) => of.reduce((all, { times }) => all + times, 0)
  return {
    ...{ recorder, rows, dropped, failures, decide, check, timesOf },
    /** Every row with its recipient. */
    named: () => rows.filter(({ to }) => to !== undefined),
    unnamed: () => rows.filter(({ to }) => to === undefined),
    answerBy: (by: typeof answer) => {
      answer = by
    },
  }
}
/** Longer than the pause between two turns. */
const turn = () => vi.advanceTimersByTimeAsync(1_300)

describe('a flood of refusals', () => {
  test('of one recipient: one row at once, and one for its repeats every five seconds', async () => {
    const { decide, rows, dropped } = open()
    for (let at = 0; at < 10_000; at++) decide(person.to, refusal('recipient'))
    await turn()
    expect(rows.map(({ times, to }) => [times, to])).toEqual([[10_000, person.to]])
    for (let second = 0; second < 10; second++) {
      decide(person.to, refusal('recipient'))
      await vi.advanceTimersByTimeAsync(1_000)
    }
    expect(rows.length).toBeLessThanOrEqual(3)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(rows.reduce((all, { times }) => all + times, 0)).toBe(10_010)
    expect(dropped).toEqual({ history: 0, sums: 0 })
  })

  test('of 20,000 recipients by a shared rule: some rows, every decision counted, and room for the own limits of another recipient', async () => {
    const { decide, named, unnamed, recorder, rows, timesOf, dropped } = open()
    for (let at = 0; at < 20_000; at++) decide(numberOf(at), refusal('ip'))
    decide(person.to, refusal('recipient'))
    await recorder.close()
    expect(named()).toHaveLength(81)
    expect(named().at(-1)).toMatchObject({ to: person.to, refusal: { rule: 'recipient' } })
    expect(unnamed()).toMatchObject([{ outcome: 'refused', times: 19_920 }])
    expect(unnamed()[0]).not.toHaveProperty('fields')
    expect(timesOf(rows)).toBe(20_001)
    expect(dropped).toEqual({ history: 19_920, sums: 0 })
  })

  test('that lasts: one row a second by shared rules and five by own rules', async () => {
    const { decide, named } = open()
    const seconds = 100
    for (let at = 0; at < seconds * 20; at++) {
      decide(numberOf(at), refusal('ip'))
      decide(numberOf(at), refusal('recipient'))
      await vi.advanceTimersByTimeAsync(50)
    }
    const of = (rule: string) => named().filter((row) => row.refusal?.rule === rule).length
    expect(of('ip')).toBeLessThanOrEqual(80 + seconds + 1)
    expect(of('recipient')).toBeLessThanOrEqual(160 + 5 * seconds + 1)
  })

  test('of one app: another app, which comes last, has all its rows', async () => {
    const { decide, named, recorder } = open()
    for (let at = 0; at < 2_000; at++) decide(numberOf(at), refusal('recipient'), 'flooded')
    for (let at = 0; at < 15; at++) decide(numberOf(at), refusal('recipient'), 'other')
    await recorder.close()
    expect(named().filter(({ app }) => app === 'other')).toHaveLength(15)
  })
})

test('accepted sends make room for the checks of their codes, up to a bound in a second', async () => {
  const { decide, check, named, rows, recorder, timesOf } = open()
  const passed = () => named().filter(({ outcome }) => outcome === 'passed').length
  for (let at = 0; at < 1_000; at++) {
    decide(numberOf(at))
    check(numberOf(at), 'passed')
    await vi.advanceTimersByTimeAsync(10)
  }
  await turn()
  expect(passed()).toBe(1_000)
  for (let at = 0; at < 2_000; at++) {
    decide(numberOf(at))
    check(numberOf(at), 'passed')
  }
  await recorder.close()
  expect(passed()).toBeLessThanOrEqual(1_000 + 2 * 160 + 10)
  expect(timesOf(rows)).toBe(6_000)
})

test('checks without a code, 10,000 of one recipient: one row', async () => {
  const { check, rows } = open()
  for (let at = 0; at < 10_000; at++) check(person.to, 'gone')
  await turn()
  expect(rows).toMatchObject([{ outcome: 'gone', times: 10_000 }])
})

test('a check has the fields of its limit check; one whose count was given back has none', async () => {
  const { recorder, decide, check, rows } = open()
  const compared = decide(person.to, admission, 'shop', 'check')
  check(person.to, 'mismatch', compared.requestId)
  const ended = decide(person.to, admission, 'shop', 'check')
  recorder.released(ended.fields, ended.requestId)
  check(person.to, 'gone', ended.requestId)
  check(person.to, 'refused')
  await recorder.close()
  expect(rows).toMatchObject([
    { outcome: 'mismatch', policy: 'check', fields: compared.fields, isSolved: true },
    { outcome: 'gone', policy: undefined, fields: undefined },
  ])
  expect(rows).toHaveLength(2)
})

test('a wrong code that began a lock is a row each time', async () => {
  const { decide, rows, recorder } = open()
  const lock = { ...refusal('recipient'), newLock: refusal('recipient') }
  decide(person.to, lock)
  decide(person.to, lock)
  await recorder.close()
  expect(rows).toMatchObject([{ outcome: 'locked' }, { outcome: 'locked' }])
})

describe('admitted sends', () => {
  test('within the bound: each is a row, and a failed send has another', async () => {
    const { decide, rows, recorder } = open()
    const { fields, requestId } = decide(person.to)
    recorder.released(fields, requestId)
    await recorder.close()
    expect(rows).toMatchObject([
      { outcome: 'admitted', noticeId: requestId, fields, share: 0 },
      { outcome: 'released', noticeId: requestId },
    ])
  })

  test('above the bound: fewer recipients, each with all its sends; the others are counted', async () => {
    const { decide, named, rows, recorder, timesOf, dropped } = open()
    const people = Array.from({ length: 2_000 }, (_, at) => numberOf(at))
    for (const to of people) decide(to)
    for (const to of people) decide(to)
    await recorder.close()
    expect(timesOf(rows)).toBe(4_000)
    const byRecipient = Map.groupBy(named(), ({ to }) => to)
    const last = Math.max(...named().map((row) => row.share ?? 0))
    expect(last).toBeGreaterThan(1)
    const levelOf = (to: string) => Math.clz32(secrets.recipientHash('sms', to).readInt32BE(0))
    for (const to of people.filter((one) => levelOf(one) >= last)) {
      expect(byRecipient.get(to)).toHaveLength(2)
    }
    expect(named().length).toBeLessThanOrEqual(300 + 20 * 50 + 10)
    // Nothing that support needs is missing.
    expect(dropped).toEqual({ history: 0, sums: 0 })
  })

  test('calm again: the share grows until every recipient is in it', async () => {
    const { decide, rows } = open()
    for (let at = 0; at < 2_000; at++) decide(numberOf(at))
    for (let minute = 0; minute < 40; minute++) {
      await vi.advanceTimersByTimeAsync(60_000)
      decide(numberOf(minute))
    }
    await turn()
    expect(rows.at(-1)).toMatchObject({ to: numberOf(39), share: 0 })
  })
})

describe('a table that is away', () => {
  test('what could not be written is counted, its reason is reported, and later decisions are written', async () => {
    const { decide, answerBy, rows, dropped, failures } = open()
    const away = new Error('away')
    answerBy(() => Promise.reject(away))
    for (let at = 0; at < 3; at++) decide(person.to, refusal('recipient'))
    await turn()
    expect(dropped).toEqual({ history: 0, sums: 3 })
    expect(failures).toEqual([away])
    answerBy(async () => {})
    decide(numberOf(1), refusal('recipient'))
    await turn()
    expect(rows).toMatchObject([{ to: numberOf(1) }])
  })

  test('a write hangs: no second one begins, and memory has a bound', async () => {
    const { decide, answerBy, rows, dropped, recorder, timesOf } = open()
    const { promise, resolve } = Promise.withResolvers<void>()
    let writes = 0
    answerBy(() => {
      writes += 1
      return promise
    })
    decide(person.to, refusal('recipient'))
    await turn()
    for (let at = 0; at < 12_000; at++) decide(numberOf(at), refusal('recipient'), `app-${at}`)
    await turn()
    expect([writes, rows]).toEqual([1, []])
    resolve()
    await recorder.close()
    expect(rows.length).toBeLessThanOrEqual(10_000)
    expect(timesOf(rows) + dropped.sums).toBe(12_001)
  })
})

test('nothing was decided: nothing is written', async () => {
  const { rows, answerBy } = open()
  const write = vi.fn(async () => {})
  answerBy(write)
  await vi.advanceTimersByTimeAsync(60_000)
  expect([rows, write.mock.calls]).toEqual([[], []])
})

test('a flood that lasts: what is only counted has the time at which it was decided', async () => {
  const { decide, unnamed } = open()
  const startMs = performance.now()
  for (let second = 0; second < 60; second++) {
    for (let at = 0; at < 200; at++) decide(numberOf(second * 200 + at), refusal('ip'))
    for (let at = 0; at < 200; at++) decide(numberOf(second * 200 + at))
    await vi.advanceTimersByTimeAsync(1_000)
  }
  for (const outcome of ['refused', 'admitted'] as const) {
    const rows = unnamed().filter((row) => row.outcome === outcome)
    expect(rows.length).toBeGreaterThan(9)
    expect((rows.at(-1)?.atMs ?? 0) - startMs).toBeGreaterThan(50_000)
  }
  const shares = unnamed().flatMap(({ outcome, share = 0 }) =>
    outcome === 'admitted' ? share : [],
  )
  expect(shares.at(-1)).toBe(Math.max(...shares))
  expect(shares.at(-1)).toBeGreaterThan(0)
})

test('the end of the process: equal decisions that had no room are counted too', async () => {
  const { decide, rows, recorder, timesOf } = open()
  for (let at = 0; at < 161; at++) decide(numberOf(at), refusal('recipient'))
  await turn()
  // These entries come behind the one of the counts.
  for (let at = 161; at < 166; at++) decide(numberOf(at), refusal('recipient'))
  await turn()
  for (let at = 0; at < 166; at++) decide(numberOf(at), refusal('recipient'))
  await recorder.close()
  expect(timesOf(rows)).toBe(2 * 166)
})
