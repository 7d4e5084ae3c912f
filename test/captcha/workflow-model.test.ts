/**
 * Interleavings of all that happens to a verification, against a naive model: guesses, right codes, next, failures, receipts,
 * cancels, other sends, and processes that die around the commit. `npm run test:workflows` draws 100,000 of them, many at once.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createBatcher } from '../../src/base/batcher.ts'
import { newId } from '../../src/base/ids.ts'
import { Unavailable } from '../../src/base/unavailable.ts'
import { createCodeStore } from '../../src/captcha/code-store.ts'
import { createSendWay } from '../../src/captcha/send-way.ts'
import { createWorkflows } from '../../src/captcha/workflows.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { createNoticeCreator } from '../../src/notice/create.ts'
import type { ReadMessage } from '../../src/notice/message.ts'
import { createPipeline } from '../../src/notice/pipeline.ts'
import { createReceipts } from '../../src/notice/receipts.ts'
import { createNoticeStore } from '../../src/notice/store.ts'
import type { DueVerification } from '../../src/notice/verifications.ts'
import type { Caller } from '../../src/rules/caller.ts'
import { databaseAt, testDatabase } from '../tools/database.ts'
import { noKnownBrowsers } from '../tools/no-known-browsers.ts'
import { testRedis } from '../tools/redis.ts'
import { closeLater, releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const runs = Number(process.env.WORKFLOW_RUNS ?? 60)
/** So many interleavings run at a time, because each waits for servers most of its time. */
const atATime = Math.min(24, Math.ceil(runs / 10))
const budget = 3
const channels = ['sms', 'voice', 'email'] as const

const redis = await testRedis()
const { url, pool } = await testDatabase()
// Only this test asks for the notices of a verification.
await pool.query('CREATE INDEX ON notice (verification_id)')
const database = databaseAt(url, 30)
const secrets = createSecrets('a secret of at least thirty-two bytes')
const options = { keyPrefix: redis.prefix, ttlMs: 300_000, triesPerCode: budget }
const connection = await redis.connect('code')
const codes = closeLater(createCodeStore(connection, secrets, options))
const notices = createNoticeStore(database, { claimTtlMs: 10_000 })
// biome-ignore lint/suspicious/noExplicitAny: the test counts nothing
const silent: any = new Proxy({}, { get: () => ({ inc() {}, observe() {} }) })
const receipts = createReceipts(database, silent)

/** The digits of each notice, as the person reads them. */
const digits = new Map<string, string>()
/**
 * How a commit ends. `lost`: it is not made, `unknown`: it is made, and its answer is lost. `dies`: the process dies before
 * it, `dies after`: the process dies before it settles the digits.
 */
const fates = ['made', 'made', 'lost', 'unknown', 'dies', 'dies after'] as const
type Fate = (typeof fates)[number]
/** By app, as each interleaving has its own. */
const fateOf = new Map<string, Fate>()
class Died extends Error {}
const isFault = (error: unknown) => error instanceof Unavailable || error instanceof Died

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
  remembersRefusal: () => false,
  acquireAndRelease: async () => undefined,
}
const oncePerKey = {
  answerBy: () => performance.now() + 10_000,
  isNew: async () => true,
  begin: async () => ({ earlierId: undefined, newId: async () => newId(), end: async () => {} }),
}
const pipeline = createPipeline({
  ...{ oncePerKey, quota, store: notices, canReach: async () => true, nowMs: Date.now },
  async createNotice(notice, params, timeoutMs) {
    const how = fateOf.get(notice.app)
    if (how === 'dies') throw new Died()
    if (how !== 'dies after') fateOf.delete(notice.app)
    if (how === 'lost') throw new Unavailable('postgresql', undefined, 'the test dropped it')
    const created = await creator.createNotice(notice, params, timeoutMs)
    digits.set(notice.id, String(params.code))
    if (how === 'dies after') throw new Died()
    if (how === 'unknown') {
      await notices.abandon([notice.id])
      throw new Unavailable('postgresql', undefined, 'the test dropped it')
    }
    return created
  },
})
const readMessage: ReadMessage = (_, { to, params }) => ({
  ...{ to, country: 'CN', locale: 'en', params, providers: [] },
})
const ways = createSendWay({
  ...{ readMessage, make: pipeline.make, quota, oncePerKey },
  guessLimits: { refundOf: () => undefined, waitMsOf: async () => 0 },
  challenges: { refuse: async (_, limited) => limited },
  // A process that died undoes nothing.
  codes: {
    ...codes,
    forget: (owner, ...of) => fateOf.has(owner.app) || codes.forget(owner, ...of),
  },
  ...{ store: notices, seal: secrets.seal, links: new Map() },
  code: { length: 6, ttlMs: 300_000 },
  testRecipients: { codeOf: () => undefined },
})
const workflows = createWorkflows({
  ...{
    workflows: { all: channels },
    oncePerKey,
    once: pipeline.once,
    quota,
    codes,
    ways,
    readMessage,
  },
  normaliseRecipient: (_, to) => ({ kind: 'ok', to, country: 'CN' }),
  challenges: { enter: async () => ({ isHuman: true, giveBack() {} }) },
  ...{ known: noKnownBrowsers, store: notices, unseal: secrets.unseal, nowMs: Date.now },
})

/** The notices of a verification, in the order of its ways. */
const findNotices = createBatcher<string, NoticeRow[]>({
  ...{ maxItems: 100, maxConcurrent: 2 },
  async run(ids) {
    const { rows } = await pool.query<NoticeRow & { of: string }>(
      `SELECT v.id AS of, n.id, channel, recipient, state, claims FROM notice n JOIN verification v ON v.id = verification_id
       WHERE v.id = ANY($1) AND error IS DISTINCT FROM 'abandoned' ORDER BY array_position(v.notices, n.id)`,
      [ids],
    )
    const byId = Map.groupBy(rows, (row) => row.of)
    return ids.map((id) => byId.get(id) ?? [])
  },
})

/** Takes due ways, as one pass of a worker for all interleavings that ask in the meantime. */
const takeDue = createBatcher<string, DueVerification | undefined>({
  ...{ maxItems: 100, maxConcurrent: 1 },
  async run(ids) {
    await pool.query(
      'UPDATE verification SET due_at = now() WHERE id = ANY($1) AND due_at IS NOT NULL',
      [ids],
    )
    // Also rows of others, who did not ask now. For them it is a worker that died.
    const newIds = Array.from({ length: 200 }, () => newId())
    const due = await notices.takeDueWays(newIds, 15_000)
    return ids.map((id) => due.find((one) => one.id === id))
  },
})

interface NoticeRow {
  id: string
  channel: (typeof channels)[number]
  recipient: string
  state: string
  claims: number
}

const step = fc.record({
  do: fc.constantFrom(
    ...(['next', 'next', 'next', 'deliver', 'deliver', 'deliver', 'deliver'] as const),
    ...(['begin due', 'begin due', 'begin due', 'receipt', 'receipt', 'guess', 'guess'] as const),
    ...(['right', 'cancel', 'other send', 'two next'] as const),
  ),
  fate: fc.constantFrom(...fates),
  isAccepted: fc.boolean(),
  which: fc.nat(2),
})
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

  const rows = () => findNotices(id)
  const ownerOf = ({ channel, recipient }: NoticeRow) => ({
    ...{ app, scene: 'login', channel, to: recipient },
  })

  /** A worker with every waiting notice, as `deliver.ts` does it. */
  async function deliver(isAccepted: boolean): Promise<boolean> {
    const waiting = (await rows()).filter(({ state }) => state === 'pending')
    for (const row of waiting) {
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
    return waiting.length > 0
  }

  /** Undefined if the fate is that the server is away, or the process dies. A busy machine's late answer is no fate. */
  async function withFate<Result>(fate: Fate, run: () => Promise<Result>) {
    fateOf.set(app, fate)
    try {
      return await run()
    } catch (error) {
      if (fate === 'made' || !isFault(error)) throw error
      return undefined
    } finally {
      fateOf.delete(app)
    }
  }

  /** A worker's pass over this verification. Returns whether it was due. */
  async function beginDue(fate: Fate): Promise<boolean> {
    const due = await takeDue(id)
    if (due) await withFate(fate, () => workflows.beginDue(due))
    return due !== undefined
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

  async function next(fate: Fate): Promise<void> {
    const made = await withFate(fate, () => workflows.next({ id }, caller))
    if (made && (isEnded || isOutOfTries)) {
      expect(made.outcome).toMatch(/^(code_gone|no_more_ways)$/)
    }
  }

  for (const one of steps) {
    if (one.do === 'next') await next(one.fate)
    else if (one.do === 'two next') await Promise.all([next('made'), next('made')])
    else if (one.do === 'deliver') await deliver(one.isAccepted)
    else if (one.do === 'begin due') await beginDue(one.fate)
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
  let isMoving = true
  for (let pass = 0; isMoving && pass < 8; pass++) {
    isMoving = (await deliver(false)) || (await beginDue('made'))
  }
  expect(compared).toBeLessThanOrEqual(budget)
  const all = await rows()
  const begun = all.map(({ channel }) => channel)
  expect(new Set(begun).size, 'no way twice').toBe(begun.length)
  const latest = all.at(-1)
  const isUnsent = ['failed', 'expired'].includes(latest?.state ?? '')
  if (!isEnded && !isOutOfTries && isUnsent)
    expect(begun, 'no failed way without its next').toEqual([...channels])
  expect(isMoving, 'nothing waits, and no way is due').toBe(false)
}

/** Once more, as another verification, if a busy machine's servers answered late outside the faults of the test. */
async function playInTime(steps: readonly Step[], triesLeft = 4): Promise<void> {
  try {
    await play(steps)
  } catch (error) {
    if (!(error instanceof Unavailable) || triesLeft === 0) throw error
    // Without this, a lost connection would use up all tries at once.
    await eventually(async () => {
      await connection.ping()
      await database.query('ready', 'SELECT 1', [])
    })
    await playInTime(steps, triesLeft - 1)
  }
}

test(
  'in any order: no guess beyond the budget, nothing sent after the end, no way twice, no failed way without its next (I2, I5, I8)',
  async () => {
    const steps = fc.array(step, { minLength: 3, maxLength: 14 })
    // The short form is the same in every run of the suite.
    const seed = process.env.WORKFLOW_RUNS ? Date.now() : 39
    const numRuns = Math.ceil(runs / atATime)
    const all = Array.from({ length: atATime }, (_, lane) =>
      fc.assert(
        fc.asyncProperty(steps, (each) => playInTime(each)),
        { numRuns, seed: seed + lane },
      ),
    )
    await Promise.all(all)
  },
  Math.max(180_000, runs * 500),
)
