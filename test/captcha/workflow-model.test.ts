/**
 * Interleavings of all that happens to a verification, against a naive model: guesses, right codes, next, failures, receipts,
 * cancels, other sends, and processes that die at the commit. `npm run test:workflows` draws 100,000 of them.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { Unavailable } from '../../src/base/unavailable.ts'
import { createCodeStore } from '../../src/captcha/code-store.ts'
import { createRefuseEarly } from '../../src/captcha/refuse-early.ts'
import { createSendWay } from '../../src/captcha/send-way.ts'
import { createWorkflows } from '../../src/captcha/workflows.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { createNoticeCreator } from '../../src/notice/create.ts'
import { createPipeline } from '../../src/notice/pipeline.ts'
import { createReceipts } from '../../src/notice/receipts.ts'
import { createNoticeStore } from '../../src/notice/store.ts'
import type { Caller } from '../../src/rules/caller.ts'
import { openDatabase } from '../../src/storage/database.ts'
import { testDatabase } from '../tools/database.ts'
import { noKnownBrowsers } from '../tools/no-known-browsers.ts'
import { testRedis } from '../tools/redis.ts'
import { releaseLater } from '../tools/release.ts'

const runs = Number(process.env.WORKFLOW_RUNS ?? 60)
const budget = 3
const channels = ['sms', 'voice', 'email'] as const

const redis = await testRedis()
const { url, pool } = await testDatabase()
const database = openDatabase(url, { maxConnections: 4, onError: () => {} })
releaseLater(() => database.close())
const secrets = createSecrets('a secret of at least thirty-two bytes')
const options = { keyPrefix: redis.prefix, ttlMs: 300_000, triesPerCode: budget }
const codes = createCodeStore(await redis.connect('code'), secrets, options)
releaseLater(() => codes.close())
const notices = createNoticeStore(database, { claimMs: 10_000 })
// biome-ignore lint/suspicious/noExplicitAny: the test counts nothing
const silent: any = new Proxy({}, { get: () => ({ inc() {}, observe() {} }) })
const receipts = createReceipts(database, silent)

/** The digits of each notice, as the person reads them. */
const digits = new Map<string, string>()
/** How the next commit ends: `lost`: it is not made, `unknown`: it is made, and its answer is lost. */
let fate: 'made' | 'lost' | 'unknown' = 'made'

const creator = createNoticeCreator({
  store: notices,
  producer: { add: async () => {} } as never,
  hashesOf: secrets.recipientHashes,
  seal: secrets.seal,
  ...{ metrics: silent, log: silent, isTestRecipient: () => false, nowMs: Date.now },
})
releaseLater(() => creator.close())

const admitted = { admitted: true, remaining: [], nextInMs: 0 } as const
const quota = {
  acquire: async () => admitted,
  acquireOnce: async () => admitted,
  release() {},
  releaseUnsent() {},
  nextInMs: async () => 0,
  fieldsOf: () => ({}),
  isRefused: () => false,
  findRefusal: async () => undefined,
}
const oncePerKey = {
  answerBy: () => performance.now() + 10_000,
  isNew: async () => true,
  begin: async () => ({ earlierId: undefined, newId: async () => newId(), end: async () => {} }),
}
const pipeline = createPipeline({
  ...{ oncePerKey, quota, store: notices, canReach: async () => true, nowMs: Date.now },
  async createNotice(notice, params, timeoutMs) {
    const how = fate
    fate = 'made'
    if (how === 'lost') throw new Unavailable('postgresql', undefined, 'the test dropped it')
    const created = await creator.createNotice(notice, params, timeoutMs)
    digits.set(notice.id, String(params.code))
    if (how === 'unknown') {
      await notices.abandon([notice.id])
      throw new Unavailable('postgresql', undefined, 'the test dropped it')
    }
    return created
  },
})
const ways = createSendWay({
  readMessage: (_, { to, params }) => ({ to, country: 'CN', locale: 'en', params, providers: [] }),
  make: pipeline.make,
  quota,
  guessLimits: { refundOf: () => undefined, waitMsOf: async () => 0 },
  challenges: { refuse: async (_, limited) => limited },
  ...{
    codes,
    store: notices,
    seal: secrets.seal,
    code: { length: 6, ttlMs: 300_000 },
    links: new Map(),
  },
  testRecipients: { codeOf: () => undefined },
})
const workflows = createWorkflows({
  ...{ workflows: { all: channels }, oncePerKey, once: pipeline.once, quota, codes, ways },
  normaliseRecipient: (_, to) => ({ kind: 'ok', to, country: 'CN' }),
  refuseEarly: createRefuseEarly({ oncePerKey, quota }),
  challenges: { enter: async () => ({ isHuman: true, giveBack() {} }) },
  ...{ known: noKnownBrowsers, store: notices, unseal: secrets.unseal, nowMs: Date.now },
})

const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('next' as const),
      fate: fc.constantFrom('made', 'made', 'lost', 'unknown'),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('deliver' as const), isAccepted: fc.boolean() }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('begin due' as const),
      fate: fc.constantFrom('made', 'made', 'lost', 'unknown'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('receipt' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('guess' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('right' as const), which: fc.nat(2) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constantFrom('cancel' as const, 'other send' as const, 'two next' as const),
    }),
  },
)
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never

let people = 0

async function play(steps: readonly Step[]): Promise<void> {
  people += 1
  const app = newId()
  const caller: Caller = { app, keyId: 'key', ip: '203.0.113.5', isPage: false, origins: [] }
  const to = `+8613${String(people).padStart(9, '0')}`
  const person = {
    to,
    email: `${people}@shop.test`,
    scene: 'login',
    template: 'captcha',
    params: {},
  }
  const sent = await workflows.sendWorkflow({ workflow: 'all', ...person }, caller)
  if (sent.outcome !== 'accepted') throw new Error(sent.outcome)
  const { id } = sent
  let compared = 0
  let isEnded = false
  /** No way begins for a stranger. Messages that wait are sent, because a known browser has more tries. */
  let isOutOfTries = false

  const rows = async () => {
    const { rows: found } = await pool.query(
      `SELECT id, channel, recipient, state, claims, error FROM notice WHERE verification_id = $1
       AND error IS DISTINCT FROM 'abandoned' ORDER BY id`,
      [id],
    )
    return found
  }
  const ownerOf = (row: { channel: (typeof channels)[number]; recipient: string }) => ({
    ...{ app, scene: 'login', channel: row.channel, to: row.recipient },
  })

  /** A worker with every waiting notice, as `deliver.ts` does it. */
  async function deliver(isAccepted: boolean): Promise<void> {
    for (const row of await rows()) {
      if (row.state !== 'pending') continue
      const settled = await codes.settle(ownerOf(row), row.id, id)
      if (settled === 'current') expect(isEnded, 'nothing is sent after the end').toBe(false)
      const end =
        settled !== 'current'
          ? { state: 'expired' as const, error: `code_${settled}` }
          : isAccepted
            ? { state: 'sent' as const, provider: 'one', providerMessageId: row.id }
            : { state: 'failed' as const, error: 'rejected' }
      await notices.record({ id: row.id, claims: row.claims, attempts: [], ...end })
    }
  }

  /** A worker's pass over this verification. Returns whether it was due. */
  async function beginDue(how: typeof fate): Promise<boolean> {
    await pool.query(
      'UPDATE verification SET due_at = now() WHERE id = $1 AND due_at IS NOT NULL',
      [id],
    )
    const due = (await notices.takeDueWays([newId()], 15_000)).filter((one) => one.id === id)
    for (const one of due) {
      fate = how
      await workflows.beginDue(one).catch((error) => {
        if (!(error instanceof Unavailable)) throw error
      })
      fate = 'made'
    }
    return due.length > 0
  }

  async function guess(code: string): Promise<void> {
    const home = await codes.findHome(app, id)
    if (!home) return
    const { result } = await codes.guess(home, code, id)
    if (result === 'passed' || result === 'mismatch') compared += 1
    if (result === 'passed') {
      expect(isEnded || isOutOfTries, 'no code passes after the end').toBe(false)
      isEnded = true
    }
    if (compared === budget) isOutOfTries = true
  }

  async function next(how: typeof fate): Promise<void> {
    fate = how
    const outcome = await workflows.next({ id }, caller).catch((error) => {
      if (!(error instanceof Unavailable)) throw error
      return { outcome: 'unavailable' as const }
    })
    fate = 'made'
    if (isEnded || isOutOfTries)
      expect(outcome.outcome).toMatch(/^(code_gone|no_more_ways|unavailable)$/)
  }

  for (const one of steps) {
    if (one.do === 'next') await next(one.fate as typeof fate)
    else if (one.do === 'two next') await Promise.all([next('made'), next('made')])
    else if (one.do === 'deliver') await deliver(one.isAccepted)
    else if (one.do === 'begin due') await beginDue(one.fate as typeof fate)
    else if (one.do === 'guess') await guess('wrong')
    else if (one.do === 'right') {
      const row = (await rows())[one.which]
      if (row) await guess(digits.get(row.id) ?? 'none')
    } else if (one.do === 'receipt') {
      const row = (await rows()).find(({ state }) => state === 'sent')
      if (row) await receipts.take('one', [{ messageId: row.id, outcome: 'failed' } as never])
    } else if (one.do === 'cancel') {
      const home = await codes.findHome(app, id)
      if (home) await codes.drop(home, id)
      isEnded = true
    } else if (one.do === 'other send') {
      const owner = { app, scene: 'login', channel: 'sms', to } as const
      const noticeId = newId()
      if (await codes.remember(owner, noticeId, '999999')) await codes.settle(owner, noticeId)
      isEnded = true
    }
  }

  // Then the servers and workers have no more faults, and each message fails.
  for (let pass = 0; pass < 8; pass++) {
    await deliver(false)
    await beginDue('made')
  }
  expect(compared).toBeLessThanOrEqual(budget)
  const all = await rows()
  const begun = all.map(({ channel }) => channel)
  expect(new Set(begun).size, 'no way twice').toBe(begun.length)
  const latest = all.at(-1)
  const isUnsent = ['failed', 'expired'].includes(latest?.state)
  if (!isEnded && !isOutOfTries && isUnsent)
    expect(begun, 'no failed way without its next').toEqual([...channels])
  const { rows: left } = await pool.query(
    'SELECT FROM verification WHERE id = $1 AND due_at IS NOT NULL',
    [id],
  )
  expect(left).toHaveLength(0)
}

test(
  'in any order: no guess beyond the budget, nothing sent after the end, no way twice, no failed way without its next (I2, I5, I8)',
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 14 }), (steps) => play(steps)),
      // The short form is the same in every run of the suite.
      process.env.WORKFLOW_RUNS ? { numRuns: runs } : { numRuns: runs, seed: 39 },
    )
  },
  Math.max(30_000, runs * 500),
)
