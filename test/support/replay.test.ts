/** Known histories, decided again. The expected counts are calculated by hand. */
import { describe, expect, test } from 'vitest'
import { parsePolicies, type RawPolicies } from '../../src/limiter/index.ts'
import type { DecisionRow } from '../../src/support/decision-log.ts'
import { replay, reportOf } from '../../src/support/replay.ts'

const startMs = Date.UTC(2026, 10, 22, 12)
const [ada, bob] = ['aaaaaaaa', 'bbbbbbbb']

let ids = 0
function sent(atS: number, hash: string, more: Partial<DecisionRow> = {}): DecisionRow {
  ids += 1
  return {
    ...{ atMs: startMs + atS * 1_000, times: 1, policy: 'captcha', rule: null, isSolved: true },
    ...{ outcome: 'admitted', noticeId: `id${ids}`, app: 'web', channel: 'sms', hash },
    fields: {
      ...{ mailbox: hash, ip: 'ip1', prefix: 'p', scene: 'login', country: 'CN' },
      ...{ template: 'captcha', dedupe: `d${hash}`, keyId: 'k' },
    },
    ...more,
  }
}
const refused = (rule: string, times = 1) =>
  ({ outcome: 'refused', rule, times, noticeId: null }) as const
const checked = (atS: number, hash: string, more: Partial<DecisionRow> = {}) =>
  sent(atS, hash, { policy: 'check', outcome: 'mismatch', noticeId: null, ...more })
const passed = (atS: number, { hash, noticeId }: DecisionRow, more: Partial<DecisionRow> = {}) =>
  checked(atS, hash, { outcome: 'passed', noticeId, ...more })

const policiesOf = (
  captcha: RawPolicies[string],
  check: RawPolicies[string] = [],
): RawPolicies => ({ captcha, notice: [], check, browser: [{ include: 'captcha' }] })
const recipient = (sliding: string, more = {}) => ({
  name: 'recipient',
  key: '{app}:{to}',
  sliding,
  ...more,
})

function run(decisions: readonly DecisionRow[], raw: RawPolicies, sinceMs = startMs) {
  const parsed = parsePolicies(raw)
  if (!parsed.ok) throw new Error('policies')
  const priceOf = (_: string, country: string) => (country === 'CN' ? 45 : 60)
  return replay({ decisions, policies: parsed.policies, raw, sinceMs, priceOf })
}

test('rows of processes without lanes count with the strangers; known browsers count apart', async () => {
  const ofKnown = (one: DecisionRow) => ({ ...one, fields: { ...one.fields, lane: 'known' } })
  const rows = [sent(0, ada), ofKnown(sent(1, ada)), ofKnown(sent(2, ada)), sent(3, ada)]
  const strangers = { ...sent(4, ada), fields: { ...sent(4, ada).fields, lane: 'stranger' } }
  const byLane = policiesOf([{ name: 'recipient', key: '{app}:{to}:{lane}', sliding: '2 per 60s' }])
  const { rows: counted } = await run([...rows, strangers], byLane)
  expect(counted[0]).toMatchObject({ rule: null, now: { admitted: 4, refused: 1 } })
})

const history = () => [
  sent(0, ada),
  sent(10, ada, refused('recipient', 3)),
  sent(70, ada),
  sent(80, bob),
  sent(200, bob),
]

test('by the same rules, with a code that passed after two hours: its use was given back, so no decision changes', async () => {
  const first = sent(0, ada)
  const rule = recipient('1 per 24h', { refund: 'passed' })
  const decisions = [first, passed(7_200, first), sent(7_300, ada)]
  expect(await run(decisions, policiesOf([rule]))).toMatchObject({ requests: 3, changes: [] })
})

test('by the same rules: what happened, and no decision changes', async () => {
  const replayed = await run(history(), policiesOf([recipient('1 per 60s')]))
  expect(replayed).toMatchObject({ requests: 7, recipients: 2, changes: [] })
  const counts = { refused: 3, challenged: 0, admitted: 4 }
  expect(replayed.rows).toEqual([
    { policy: 'captcha', rule: null, was: counts, now: counts, observed: 0 },
    {
      policy: 'captcha',
      rule: 'recipient',
      was: { refused: 3, challenged: 0, admitted: 0 },
      now: { refused: 3, challenged: 0, admitted: 0 },
      observed: 0,
    },
  ])
  expect(reportOf({ ...replayed, oneOf: 1, unnamed: 0 })).toContain('No decision would change.')
})

test('requests by a policy that the file lacks are left out, and returned', async () => {
  const others = [0, 10].map((atS) => sent(atS, ada, { policy: 'camara' }))
  const released = { ...sent(20, ada), outcome: 'released', policy: null, fields: null } as const
  const policies = policiesOf([recipient('1 per 60s')])
  const replayed = await run([...others, released, ...history()], policies)
  expect(replayed).toMatchObject({ requests: 7, changes: [], missing: ['camara'] })
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
  const report = reportOf({ ...replayed, oneOf: 1, unnamed: 0 })
  expect(report).toContain('7 requests of 2 recipients.')
  expect(report).toMatch(/^captcha {2}\(all\) +3 → 4 +4 → 3$/m)
  expect(report).toMatch(/^captcha {2}recipient +3 → 4$/m)
  expect(report).toContain(`1 admitted → refused, of 1 recipients: ${ada} (1)`)
})

test('by a looser rule: the repeats of a refusal are let through as far as there is room', async () => {
  const replayed = await run(history(), policiesOf([recipient('3 per 60s')]))
  expect(replayed.changes).toMatchObject([{ was: 'refused', now: 'admitted', requests: 2 }])
})

test('a rule that is gone has its row, and a new one too; one that only observes changes nothing', async () => {
  const records = [sent(0, ada, refused('old')), sent(1, bob), sent(2, bob)]
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

test('mode challenge asks pages that solved nothing, and no other caller', async () => {
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
  expect(changes).toMatchObject([
    { policy: 'browser', was: 'admitted', now: 'challenged', requests: 1 },
  ])
  expect(rows.find(({ rule }) => rule === 'recipient')).toMatchObject({
    policy: 'captcha',
    now: { challenged: 1 },
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
    const { noticeId } = failed
    const back = sent(0.5, ada, { outcome: 'released', noticeId, policy: null, fields: null })
    const policies = policiesOf([recipient('1 per 60s')])
    expect((await run([failed, back, sent(1, ada)], policies)).changes).toEqual([])
    expect((await run([failed, sent(1, ada)], policies)).changes).toHaveLength(1)
    // The table no longer has the send.
    expect((await run([back, sent(1, ada)], policies)).changes).toEqual([])
  })

  test('a code that passed: refunds, and misses are forgiven', async () => {
    const lockout = { limit: 2, window: '5m', lock: '15m' }
    const policies = policiesOf(
      [{ name: 'unverified', key: '{country}', sliding: '1 per 1h', refund: 'passed' }],
      [{ name: 'guesses', key: '{to}', lockout }],
    )
    const [code, miss] = [sent(0, ada), checked(1, ada)]
    const after = [sent(3, bob), checked(4, ada), checked(5, ada)]
    const right = passed(2, code)
    expect((await run([code, miss, right, ...after], policies)).changes).toEqual([])
    const without = await run([code, miss, checked(2, ada), ...after], policies)
    expect(without.changes.map(({ policy, requests }) => [policy, requests])).toEqual([
      ['captcha', 1],
      ['check', 2],
    ])
  })
})

test('a right code counts in no budget of guesses', async () => {
  const budget = [recipient('1 per 1h', { name: 'budget', mode: 'challenge' })]
  const unsolved = { isSolved: false }
  const next = checked(10, ada, unsolved)
  const right = passed(0, sent(0, ada), unsolved)
  expect((await run([right, next], policiesOf([], budget))).changes).toEqual([])
  const wrong = checked(0, ada, unsolved)
  expect((await run([wrong, next], policiesOf([], budget))).changes).toHaveLength(1)
})

test('the prices of the new file apply; one message above a budget is refused by its rule', async () => {
  const spend = (limit: number) =>
    policiesOf([{ name: 'spend', key: '{app}', sliding: `${limit} per 24h`, permits: 'price' }])
  const records = [sent(0, ada), sent(100, bob)]
  expect((await run(records, spend(90))).changes).toEqual([])
  expect((await run(records, spend(89))).changes).toMatchObject([{ requests: 1 }])
  expect((await run(records, spend(44))).changes).toMatchObject([{ requests: 2 }])
})

test('a hammered rule: 100,000 repeats are counted and cost no more than some', async () => {
  const records = [sent(0, ada), sent(1, ada, refused('recipient', 100_000))]
  const { changes, requests } = await run(records, policiesOf([recipient('3 per 60s')]))
  expect(requests).toBe(100_001)
  expect(changes).toMatchObject([{ was: 'refused', now: 'admitted', requests: 2 }])
})
