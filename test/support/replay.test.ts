/** Known histories, decided again. The expected counts are calculated by hand. */
import { describe, expect, test } from 'vitest'
import type { RawPolicies } from '../../src/limiter/index.ts'
import type { DecidedRecord, DecisionRecord } from '../../src/support/record.ts'
import { replay } from '../../src/support/replay.ts'
import { reportOf } from '../../src/support/report.ts'

const startMs = Date.UTC(2026, 10, 22, 12)
const [ada, bob, eve] = ['AAAAAAAA', 'BAAAAAAA', '_AAAAAAA']

let ids = 0
function sent(atS: number, to: string, more: Partial<DecidedRecord> = {}): DecidedRecord {
  ids += 1
  return {
    kind: 'decided',
    atMs: startMs + atS * 1_000,
    times: 1,
    policy: 'captcha',
    id: `id${ids}`,
    isSolved: true,
    share: 0,
    level: to === eve ? 0 : 9,
    fields: {
      ...{ to, mailbox: to, ip: 'ip1', prefix: 'p', channel: 'sms', app: 'web', scene: 'login' },
      ...{ country: 'CN', template: 'captcha', dedupe: `d${to}`, price: 1, keyId: 'k' },
    },
    ...more,
  }
}
const refused = (rule: string) => ({ policy: 'captcha', rule, window: '60s', retryAfterMs: 1 })

const policiesOf = (
  captcha: RawPolicies[string],
  check: RawPolicies[string] = [],
): RawPolicies => ({
  captcha,
  notice: [],
  check,
  browser: [{ include: 'captcha' }],
})
const recipient = (sliding: string, more = {}) => ({
  name: 'recipient',
  key: '{app}:{to}',
  sliding,
  ...more,
})

const run = (records: readonly DecisionRecord[], policies: RawPolicies, sinceMs = startMs) =>
  replay({ records, policies, sinceMs, priceOf: (_, country) => (country === 'CN' ? 45 : 60) })

const history = () => [
  sent(0, ada),
  sent(10, ada, { refusal: refused('recipient'), times: 3 }),
  sent(70, ada),
  sent(80, bob),
  sent(200, bob),
]

test('by the same rules, with a code that passed after two hours: its use was given back, so no decision changes', async () => {
  const first = sent(0, ada)
  const passed: DecisionRecord = {
    ...{ kind: 'checked', result: 'passed', share: 0, level: 9 },
    ...{ atMs: startMs + 7_200_000, id: 'x', sentId: first.id },
  }
  const rule = recipient('1 per 24h', { refund: 'passed' })
  const replayed = await run([first, passed, sent(7_300, ada)], policiesOf([rule]))
  expect(replayed).toMatchObject({ requests: 2, changes: [] })
})

test('by the same rules: what happened, and no decision changes', async () => {
  const replayed = await run(history(), policiesOf([recipient('1 per 60s')]))
  expect(replayed).toMatchObject({ requests: 7, recipients: 2, oneOf: 1, changes: [] })
  const counts = { refused: 3, asked: 0, admitted: 4 }
  expect(replayed.rows).toEqual([
    { policy: 'captcha', rule: null, was: counts, now: counts, observed: 0 },
    {
      policy: 'captcha',
      rule: 'recipient',
      was: { refused: 3, asked: 0, admitted: 0 },
      now: { refused: 3, asked: 0, admitted: 0 },
      observed: 0,
    },
  ])
  expect(reportOf(replayed)).toContain('No decision would change.')
})

test('requests by a policy that the file lacks are left out, and named', async () => {
  const others = [0, 10].map((atS) => sent(atS, ada, { policy: 'camara', refusal: refused('x') }))
  const released = { ...history()[0], kind: 'released', id: others[0]?.id } as DecisionRecord
  const policies = policiesOf([recipient('1 per 60s')])
  const replayed = await run([...others, released, ...history()], policies)
  expect(replayed).toMatchObject({ requests: 7, changes: [], missing: ['camara'] })
  expect(reportOf(replayed)).toContain(
    'Requests by camara are left out: the file has no such policy.',
  )
})

test('by a bucket in place of a window: who comes back after a turn of its rate passes', async () => {
  const bucket = { name: 'recipient', key: '{app}:{to}', bucket: { rate: '6 per 60s', burst: 1 } }
  const replayed = await run(history(), policiesOf([bucket]))
  expect(replayed.changes).toMatchObject([{ was: 'refused', now: 'admitted', requests: 1 }])
  expect(replayed.rows[1]).toMatchObject({ was: { refused: 3 }, now: { refused: 2 } })
})

test('by a tighter rule: who of them, how often', async () => {
  const replayed = await run(history(), policiesOf([recipient('1 per 120s')]))
  expect(replayed.changes).toEqual([
    {
      policy: 'captcha',
      was: 'admitted',
      now: 'refused',
      requests: 1,
      recipients: [{ hash: ada, requests: 1 }],
    },
  ])
  const report = reportOf(replayed)
  expect(report).toContain(
    '7 requests of 2 recipients, 2026-11-22 12:00:00 to 2026-11-22 12:03:20.',
  )
  expect(report).toMatch(/^captcha {2}\(all\) +3 → 4 +4 → 3$/m)
  expect(report).toMatch(/^captcha {2}recipient +3 → 4$/m)
  expect(report).toContain(`1 admitted → refused, of 1 recipients: ${ada} (1)`)
})

test('by a looser rule: the repeats of a refusal are let through as far as there is room', async () => {
  const replayed = await run(history(), policiesOf([recipient('3 per 60s')]))
  expect(replayed.changes).toMatchObject([{ was: 'refused', now: 'admitted', requests: 2 }])
})

test('a rule that is gone has its row, and a new one too; one that only observes changes nothing', async () => {
  const records = [sent(0, ada, { refusal: refused('old') }), sent(1, bob), sent(2, bob)]
  const watch = { ...recipient('1 per 60s'), name: 'watch', mode: 'observe' as const }
  const { rows, changes } = await run(records, policiesOf([watch]))
  expect(
    rows.map(({ rule, was, now, observed }) => [rule, was.refused, now.refused, observed]),
  ).toEqual([
    [null, 1, 0, 0],
    ['old', 1, 0, 0],
    ['watch', 0, 0, 1],
  ])
  expect(changes).toMatchObject([{ was: 'refused', now: 'admitted', requests: 1 }])
})

test('mode challenge asks pages that solved nothing, and no one else', async () => {
  const page = { policy: 'browser', isSolved: false }
  const records = [
    sent(0, ada),
    sent(1, ada),
    sent(2, ada, page),
    sent(3, ada, { ...page, isSolved: true }),
  ]
  const { changes, rows } = await run(
    records,
    policiesOf([recipient('1 per 60s', { mode: 'challenge' })]),
  )
  expect(changes).toMatchObject([{ policy: 'browser', was: 'admitted', now: 'asked', requests: 1 }])
  expect(rows.find(({ rule }) => rule === 'recipient')).toMatchObject({
    policy: 'captcha',
    now: { asked: 1 },
  })
})

test('what came before the span fills the counts and is not counted', async () => {
  const policies = policiesOf([recipient('1 per 60s')])
  const replayed = await run([sent(-30, ada), sent(0, ada)], policies)
  expect(replayed).toMatchObject({ requests: 1, changes: [{ was: 'admitted', now: 'refused' }] })
  const watch = policiesOf([recipient('1 per 60s', { mode: 'observe' })])
  const watched = await run([sent(-30, ada), sent(-20, ada), sent(0, ada)], watch)
  expect(watched.rows).toMatchObject([{ rule: null }, { rule: 'recipient', observed: 1 }])
})

describe('what is given back', () => {
  test('a send that failed', async () => {
    const failed = sent(0, ada)
    const back = {
      kind: 'released',
      ...{ atMs: startMs + 500, id: failed.id, share: 0, level: 9 },
    } as const
    const policies = policiesOf([recipient('1 per 60s')])
    expect((await run([failed, back, sent(1, ada)], policies)).changes).toEqual([])
    expect((await run([failed, sent(1, ada)], policies)).changes).toHaveLength(1)
    // The list no longer has the send.
    expect((await run([back, sent(1, ada)], policies)).changes).toEqual([])
  })

  test('a code that passed: refunds, and misses are forgiven', async () => {
    const lockout = { limit: 2, window: '5m', lock: '15m' }
    const policies = policiesOf(
      [{ name: 'unverified', key: '{country}', sliding: '1 per 1h', refund: 'passed' }],
      [{ name: 'guesses', key: '{to}', lockout }],
    )
    const check = (atS: number) => sent(atS, ada, { policy: 'check' })
    const [code, miss, right] = [sent(0, ada), check(1), check(2)]
    const passed: DecisionRecord = {
      ...{ kind: 'checked', result: 'passed', share: 0, level: 9 },
      ...{ atMs: startMs + 2_001, id: right.id, sentId: code.id },
    }
    const after = [sent(3, bob), check(4), check(5)]
    expect((await run([code, miss, right, passed, ...after], policies)).changes).toEqual([])
    const without = await run([code, miss, right, ...after], policies)
    expect(without.changes.map(({ policy, requests }) => [policy, requests])).toEqual([
      ['captcha', 1],
      ['check', 2],
    ])
  })
})

test('a right code counts in no budget of guesses', async () => {
  const budget = [recipient('1 per 1h', { name: 'budget', mode: 'challenge' })]
  const check = (atS: number) => sent(atS, ada, { policy: 'check', isSolved: false })
  const [right, next] = [check(0), check(10)]
  const passed: DecisionRecord = {
    ...{ kind: 'checked', result: 'passed', share: 0, level: 9 },
    ...{ atMs: startMs + 1, id: right.id, sentId: 'unknown' },
  }
  expect((await run([right, passed, next], policiesOf([], budget))).changes).toEqual([])
  expect((await run([right, next], policiesOf([], budget))).changes).toHaveLength(1)
})

test('prices are those of the new file; one message above a budget is refused by its rule', async () => {
  const spend = (limit: number) =>
    policiesOf([{ name: 'spend', key: '{app}', sliding: `${limit} per 24h`, permits: 'price' }])
  const records = [sent(0, ada), sent(100, bob)]
  expect((await run(records, spend(90))).changes).toEqual([])
  expect((await run(records, spend(89))).changes).toMatchObject([{ requests: 1 }])
  expect((await run(records, spend(44))).changes).toMatchObject([{ requests: 2 }])
})

test('where a share was recorded the report says so, and counts those alone whose history is whole', async () => {
  const records: DecisionRecord[] = [
    sent(0, ada),
    sent(1, eve),
    { kind: 'share', atMs: startMs + 2_000, share: 3, level: 20 },
    sent(70, ada, { share: 3 }),
  ]
  const replayed = await run(records, policiesOf([recipient('1 per 60s')]))
  expect(replayed).toMatchObject({ oneOf: 8, requests: 2, recipients: 1 })
  expect(reportOf(replayed)).toMatch(/1 of 8 recipients.*underestimated/s)
  const none = await run([{ kind: 'share', atMs: startMs, share: 3, level: 20 }], policiesOf([]))
  expect(reportOf(none)).toMatch(
    /^No requests were recorded in that time\.\nThis is a sample: 1 of 8/,
  )
})

test('a full list of records is no harder than a few', async () => {
  const full = Array.from({ length: 200_000 }, () => {
    return { kind: 'share', atMs: startMs, share: 1, level: 20 } as const
  })
  expect(await run([...full, sent(0, ada)], policiesOf([]))).toMatchObject({ requests: 1 })
})

test('a hammered rule: 100,000 repeats are counted and cost no more than some', async () => {
  const records = [sent(0, ada), sent(1, ada, { refusal: refused('recipient'), times: 100_000 })]
  const { changes, requests } = await run(records, policiesOf([recipient('3 per 60s')]))
  expect(requests).toBe(100_001)
  expect(changes).toMatchObject([{ was: 'refused', now: 'admitted', requests: 2 }])
})
