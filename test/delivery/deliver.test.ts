import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { createLog } from '../../src/base/log.ts'
import { Unavailable } from '../../src/base/unavailable.ts'
import { createSecrets } from '../../src/crypto/secrets.ts'
import { createDeliver } from '../../src/delivery/deliver.ts'
import { createGuardedProvider, type GuardedProvider } from '../../src/delivery/guarded-provider.ts'
import type { Deferred } from '../../src/delivery/lines.ts'
import { createResolveUnknown } from '../../src/delivery/resolve-unknown.ts'
import { captchaPauses, noticePauses } from '../../src/delivery/retry.ts'
import type { Verdict } from '../../src/delivery/round.ts'
import type { Metrics } from '../../src/main/metrics.ts'
import type { ClaimAsked } from '../../src/notice/claim.ts'
import { noticeFormat } from '../../src/notice/format.ts'
import type { NewNotice } from '../../src/notice/insert.ts'
import { createNoticeStore, type NoticeStore } from '../../src/notice/store.ts'
import type { Message, Provider, SendResult } from '../../src/providers/provider.ts'
import { databaseAt, testDatabase } from '../tools/database.ts'
import { loadTemplates } from '../tools/load-templates.ts'
import { testMetrics } from '../tools/metrics.ts'
import { newWelcome } from '../tools/notices.ts'
import { releaseLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

/** The delivery of one worker over a real table, with providers whose answers the test sets. */
const { url, pool } = await testDatabase()
const database = databaseAt(url, 4)
const store = createNoticeStore(database, { claimTtlMs: 10_000 })
const secrets = createSecrets('a secret of at least thirty-two bytes')
const templates = loadTemplates(join(import.meta.dirname, '../../templates'))
const log = createLog({ level: 'silent', process: 'test' })

const accepted: SendResult = { kind: 'accepted', messageId: 'm1' }
const rejected: SendResult = { kind: 'rejected', detail: 'no' }
const unavailable: SendResult = { kind: 'unavailable', detail: 'down' }
const postponed = (retryAfterMs?: number): SendResult => ({
  kind: 'postponed',
  detail: 'greylisted',
  ...(retryAfterMs ? { retryAfterMs } : {}),
})
const tooFast = (retryAfterMs: number): SendResult => ({
  kind: 'throttled',
  retryAfterMs,
  detail: 'slowly',
})

/** A guarded provider that answers from the list. The last answer repeats. */
function guardedOf(
  name: string,
  answers: readonly (SendResult | ((message: Message) => Promise<SendResult>))[],
  slots = 10,
) {
  const calls: string[] = []
  const provider: Provider = {
    name,
    kind: 'fake',
    channels: ['sms', 'email'],
    slots,
    async send(message) {
      const answer = answers[Math.min(calls.push(message.noticeId), answers.length) - 1]
      return typeof answer === 'function' ? answer(message) : (answer as SendResult)
    },
    async close() {},
  }
  const guarded = createGuardedProvider(provider, {
    acquireSendPermit: async () => ({ granted: true, release: async () => {} }),
    timeoutMs: 60_000,
    onCircuit: () => {},
    onFault: () => {},
  })
  releaseLater(() => guarded.stopWaiting())
  return { guarded, calls }
}

/** The same, whose first answer comes when the test frees it. */
function blockedOf(name: string, slots?: number) {
  const { promise, resolve } = Promise.withResolvers<SendResult>()
  const one = guardedOf(name, [() => promise, accepted], slots)
  return { ...one, free: () => resolve(accepted) }
}

function worker(
  providers: readonly GuardedProvider[],
  options: {
    tries?: number
    metrics?: Metrics
    timeoutMs?: number
    answerTimeoutMs?: number
    settleCode?: Parameters<typeof createDeliver>[0]['settleCode']
    store?: NoticeStore
    producer?: NonNullable<Parameters<typeof createDeliver>[0]['producer']>
  } = {},
) {
  const {
    tries = 5,
    timeoutMs = 60_000,
    answerTimeoutMs = 0,
    metrics = testMetrics(),
    settleCode = async () => 'current' as const,
  } = options
  const { producer } = options
  return createDeliver({
    store: options.store ?? store,
    ...(producer ? { producer } : {}),
    templates,
    providersFor: () => [...providers],
    resolveUnknown: createResolveUnknown({ findReceipt: async () => undefined }),
    unseal: secrets.unseal,
    settleCode,
    isRefused: () => false,
    retry: {
      captcha: { tries, unknownRetries: 1, ...captchaPauses },
      notice: { tries, unknownRetries: 1, ...noticePauses },
    },
    timeoutMs,
    answerTimeoutMs,
    metrics,
    log,
  })
}

/** A provider with these turns, which is never away. */
const withTurns = (name: string, inTurn: GuardedProvider['inTurn']): GuardedProvider => ({
  name,
  kind: 'fake',
  channels: ['sms'],
  capacity: 10,
  inTurn,
  away: () => undefined,
  state: () => 'ready',
  postponesAll: () => false,
  stopWaiting() {},
})

/** Each message has its turn at once, and is called as soon as it is claimed. */
const turns =
  (call: (ttlMs: number) => Promise<SendResult>): GuardedProvider['inTurn'] =>
  async (_, { claim, ttlMs }) => {
    const stopped = await claim()
    if (stopped) return stopped
    const startedAt = new Date()
    return { kind: 'answered', result: await call(ttlMs()), startedAt, durationMs: 1 }
  }

/** No circuit and no pause delays a message, so every pass is a call. */
function gateless(name: string, answers: readonly SendResult[]) {
  let calls = 0
  const answer = async () => answers[Math.min(calls++, answers.length - 1)] as SendResult
  return { guarded: withTurns(name, turns(answer)), calls: () => calls }
}

/** Calls by provider and outcome, as Prometheus sees them. */
async function sendsOf(metrics: Metrics): Promise<Record<string, number>> {
  const { values } = await metrics.sends.get()
  return Object.fromEntries(
    values
      .filter(({ value }) => value > 0)
      .map(({ labels, value }) => [`${labels.provider} ${labels.outcome}`, value]),
  )
}

async function created(facts: Partial<NewNotice> = {}): Promise<string> {
  const { id = newId() } = facts
  const sealedParams = secrets.seal(JSON.stringify({ name: 'Ada' }), id)
  await store.insert(newWelcome({ id, sealedParams, ttlMs: 60_000, ...facts }))
  return id
}

function createdCode(facts: Partial<NewNotice> = {}): Promise<string> {
  const id = newId()
  const params = { code: '0042', minutes: 5, validity: '5 minutes' }
  const sealedParams = secrets.seal(JSON.stringify(params), id)
  return created({
    id,
    kind: 'captcha',
    scene: 'login',
    template: 'captcha',
    sealedParams,
    ...facts,
  })
}

async function rowOf(id: string) {
  const { rows } = await pool.query('SELECT * FROM notice WHERE id = $1', [id])
  return rows[0]
}

/** Ends the time of a notice. With a short ttl it could end before the steps that come first. */
const endTimeOf = (id: string) =>
  pool.query("UPDATE notice SET expires_at = now() - interval '1 s' WHERE id = $1", [id])

/** Ends the pauses for which providers postponed a notice. */
const endPausesOf = (id: string) =>
  pool.query(
    `UPDATE notice SET attempts = (SELECT jsonb_agg(one - 'againAt') FROM jsonb_array_elements(attempts) AS one)
     WHERE id = $1`,
    [id],
  )

const outcomesOf = async (id: string) =>
  (await rowOf(id)).attempts.map(
    ({ provider, outcome }: { provider: string; outcome: string }) => `${provider} ${outcome}`,
  )

/** The number of notices that ended unsent, by reason, without reasons that have none. */
async function unsent(metrics: Metrics): Promise<Record<string, number>> {
  const { values } = await metrics.unsent.get()
  const counted = values.filter(({ value }) => value > 0)
  return Object.fromEntries(counted.map(({ labels, value }) => [labels.reason, value]))
}

/** The time of a notice ends before its next pass: it is expired, for this reason. */
async function expectExpired(deliver: (id: string) => Promise<Verdict>, id: string, error: string) {
  await endTimeOf(id)
  expect(await deliver(id)).toEqual({ done: true })
  expect(await rowOf(id)).toMatchObject({ state: 'expired', error })
}

/** Runs passes one after the other until the notice is final. */
async function untilDone(deliver: (id: string) => Promise<Verdict>, id: string, passes = 20) {
  for (let pass = 0; pass < passes; pass++) if ((await deliver(id)).done) return
  throw new Error('it does not end')
}

/** One notice, delivered to its end by these providers: its row. */
async function rowAtEnd(
  providers: readonly { guarded: GuardedProvider }[],
  options: Parameters<typeof worker>[1] = {},
) {
  const id = await created()
  const guarded = providers.map((one) => one.guarded)
  await untilDone(worker(guarded, options), id)
  return rowOf(id)
}

test('a provider gets the time that remains: to the end of the notice', async () => {
  let ttlMs: number | undefined
  const { guarded } = guardedOf('only', [
    async ({ endsAtMs = Number.NaN }) => {
      ttlMs = endsAtMs - performance.now()
      return accepted
    },
  ])
  await untilDone(worker([guarded]), await created({ ttlMs: 60_000 }))
  expect(ttlMs).toBeLessThanOrEqual(60_000)
  expect(ttlMs).toBeGreaterThan(40_000)
})

describe('what waits for a slot has not begun (I22)', () => {
  test('while it waits no worker holds it, no try is made; then it is sent at its first try', async () => {
    const { guarded, calls, free } = blockedOf('slow', 1)
    const deliver = worker([guarded])
    const [one, two] = [await created(), await created()]
    const verdicts = [deliver(one), deliver(two)]
    await eventually(async () => (await rowOf(one)).state === 'sending')
    // Before the second call begins, nothing happens that could be awaited.
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(await rowOf(two)).toMatchObject({ state: 'pending', claims: 0, attempts: [] })
    free()
    expect(await Promise.all(verdicts)).toEqual([{ done: true }, { done: true }])
    expect(calls).toEqual([one, two])
    expect(await outcomesOf(two)).toEqual(['slow accepted'])
  })

  test('its time ends while it waits: expired, and the provider never gets it (I7)', async () => {
    const { guarded, calls, free } = blockedOf('slow', 1)
    const deliver = worker([guarded])
    const one = await created()
    const held = deliver(one)
    await eventually(() => calls.length === 1)
    const two = await created({ ttlMs: 300 })
    const verdict = await deliver(two)
    if (!verdict.done) await untilDone(deliver, two)
    expect(await rowOf(two)).toMatchObject({ state: 'expired', error: 'too_late', attempts: [] })
    expect(calls).toEqual([one])
    free()
    await held
  })

  test('another worker had it meanwhile: it is not called again (F23)', async () => {
    const { guarded, calls, free } = blockedOf('slow', 1)
    const [one, two] = [await created(), await created()]
    const deliver = worker([guarded])
    const held = [deliver(one), deliver(two)]
    await eventually(() => calls.length === 1)
    const other = guardedOf('other', [unavailable])
    await worker([other.guarded])(two)
    expect(other.calls).toEqual([two])
    free()
    await Promise.all(held)
    expect(calls).toEqual([one])
    expect(await outcomesOf(two)).toEqual(['other unavailable'])
  })

  test('the process ends: those that wait go back at once, untouched (I13)', async () => {
    const { guarded, calls, free } = blockedOf('slow', 1)
    const deliver = worker([guarded])
    const ids = [await created(), await created(), await created()]
    const [called, ...waiting] = ids.map((id) => deliver(id))
    await eventually(() => calls.length === 1)
    guarded.stopWaiting()
    expect(await Promise.all(waiting)).toEqual([
      { done: false, retryInMs: 0 },
      { done: false, retryInMs: 0 },
    ])
    for (const id of ids.slice(1)) {
      expect(await rowOf(id)).toMatchObject({ state: 'pending', claims: 0, attempts: [] })
    }
    free()
    await called
  })
})

describe('tries', () => {
  test('what was surely not taken costs none: with one try, a provider away for 30 calls, then it is sent (I29)', async () => {
    const down = Array<SendResult>(30).fill(unavailable)
    const { guarded, calls } = gateless('a', [...down, accepted])
    const id = await created()
    const metrics = testMetrics('a')
    await untilDone(worker([guarded], { tries: 1, metrics }), id, 31)
    const row = await rowOf(id)
    expect(row).toMatchObject({ state: 'sent', provider: 'a', error: null })
    expect(calls()).toBe(31)
    // The row has one entry for the whole outage. The metrics count every call.
    expect(row.attempts).toMatchObject([
      { provider: 'a', outcome: 'unavailable', detail: 'down', count: 30 },
      { provider: 'a', outcome: 'accepted' },
    ])
    const [outage] = row.attempts
    expect(Date.parse(outage.latestAt)).toBeGreaterThan(Date.parse(outage.at))
    expect(await sendsOf(metrics)).toEqual({ 'a unavailable': 30, 'a accepted': 1 })
  })

  test('the list of a row stays short with any answers of two providers in turn', async () => {
    const inTurn = (...answers: SendResult[]) => Array.from({ length: 20 }, () => answers).flat()
    const a = gateless('a', inTurn(unavailable, postponed(), tooFast(1)))
    const b = gateless('b', inTurn(postponed(), tooFast(1), unavailable))
    const id = await created()
    const deliver = worker([a.guarded, b.guarded], { tries: 1 })
    for (let pass = 0; pass < 40; pass++) {
      await deliver(id)
      await endPausesOf(id)
    }
    const row = await rowOf(id)
    expect(row.state).toBe('pending')
    expect(row.attempts).toHaveLength(6)
    const sum = row.attempts.reduce((all: number, { count = 1 }) => all + count, 0)
    expect(sum).toBe(80)
    expect(a.calls() + b.calls()).toBe(80)
  })

  test('the latest call stands last, so that the reason of an end is what it waited for last', async () => {
    const { guarded } = gateless('a', [unavailable, postponed(), unavailable])
    const deliver = worker([guarded])
    const id = await created()
    for (let pass = 0; pass < 3; pass++) {
      await deliver(id)
      await endPausesOf(id)
    }
    expect(await outcomesOf(id)).toEqual(['a postponed', 'a unavailable'])
    await expectExpired(deliver, id, 'provider_away')
  })

  test('a provider that has refused it for good is not waited for: it comes back when the other may take it', async () => {
    const [never, later] = [gateless('a', [rejected]), gateless('b', [tooFast(9_000)])]
    const verdict = await worker([never.guarded, later.guarded])(await created())
    expect(verdict.done ? 0 : verdict.retryInMs).toBeGreaterThan(9_000)
  })

  test('tries: 2 with three providers that reject → two calls, never three (22)', async () => {
    const all = ['a', 'b', 'c'].map((name) => guardedOf(name, [rejected]))
    expect(await rowAtEnd(all, { tries: 2 })).toMatchObject({
      state: 'failed',
      error: 'tries_used_up',
    })
    expect(all.flatMap(({ calls }) => calls)).toHaveLength(2)
  })

  test('one rejects for good, the other asks to wait: the first is called once, the second sends (F31)', async () => {
    const never = guardedOf('never', [rejected])
    const later = guardedOf('later', [tooFast(1), tooFast(1), tooFast(1), tooFast(1), accepted])
    const deliver = worker([never.guarded, later.guarded], { tries: 2 })
    const id = await created()
    await eventually(async () => (await deliver(id)).done, { everyMs: 5 })
    expect(await rowOf(id)).toMatchObject({ state: 'sent', provider: 'later' })
    expect(never.calls).toHaveLength(1)
  })

  test.for([
    ['before', (dead: GuardedProvider, slow: GuardedProvider) => [dead, slow]],
    ['behind', (dead: GuardedProvider, slow: GuardedProvider) => [slow, dead]],
  ] as const)(
    'with one try: a dead provider %s one that asks for a pause, and the second sends it',
    async ([, route]) => {
      const [dead, slow] = [
        guardedOf('dead', [unavailable]),
        guardedOf('slow', [tooFast(500), accepted]),
      ]
      const deliver = worker(route(dead.guarded, slow.guarded), { tries: 1 })
      const id = await created()
      await eventually(async () => (await deliver(id)).done)
      expect(await rowOf(id)).toMatchObject({ state: 'sent', provider: 'slow' })
      expect(slow.calls).toHaveLength(2)
    },
  )

  test('every provider rejects, in one pass or in two: failed, rejected, one call each', async () => {
    const [a, b] = [guardedOf('a', [rejected]), guardedOf('b', [unavailable, rejected])]
    expect(await rowAtEnd([a, b])).toMatchObject({ state: 'failed', error: 'rejected' })
    expect([a.calls.length, b.calls.length]).toEqual([1, 2])
  })

  test('the pause a provider asks for is longer than the message lives: it ends with its time', async () => {
    const { guarded } = guardedOf('a', [tooFast(3_600_000)])
    const deliver = worker([guarded])
    const id = await created({ ttlMs: 60_000 })
    const verdict = await deliver(id)
    expect(verdict.done ? Number.NaN : verdict.retryInMs).toBeLessThanOrEqual(60_000)
    const { due_at, expires_at } = await rowOf(id)
    // The provider asked for a pause of an hour.
    expect(due_at.getTime()).toBeLessThanOrEqual(expires_at.getTime() + 10_000)
    await expectExpired(deliver, id, 'too_late')
  })
})

describe('a code that was replaced', () => {
  test('while the first provider failed: the second does not send it (I7)', async () => {
    let settled: 'current' | 'gone' = 'current'
    const dying = async () => {
      settled = 'gone'
      return unavailable
    }
    const [first, second] = [guardedOf('first', [dying]), guardedOf('second', [accepted])]
    const id = await createdCode()
    const deliver = worker([first.guarded, second.guarded], { settleCode: async () => settled })
    await untilDone(deliver, id)
    expect(second.calls).toEqual([])
    expect(await rowOf(id)).toMatchObject({ state: 'expired', error: 'code_gone' })
  })

  test('Redis lost it before it was sent: code_lost, which an alert separates from code_gone (I37)', async () => {
    const { guarded, calls } = guardedOf('only', [accepted])
    const metrics = testMetrics()
    const [lost, gone] = [await createdCode(), await createdCode()]
    const settleCode = async ({ id }: { id: string }) => (id === lost ? 'lost' : 'gone')
    for (const id of [lost, gone]) await untilDone(worker([guarded], { metrics, settleCode }), id)
    expect(calls).toEqual([])
    expect(await rowOf(lost)).toMatchObject({ state: 'expired', error: 'code_lost' })
    expect(await unsent(metrics)).toEqual({ code_lost: 1, code_gone: 1 })
  })

  test('its answer was lost and the person has typed it: sent, because it arrived', async () => {
    const { guarded, calls } = guardedOf('only', [
      { kind: 'unknown', detail: 'the answer was lost' },
    ])
    const id = await createdCode()
    let settled: 'current' | 'gone' = 'current'
    const deliver = worker([guarded], { settleCode: async () => settled })
    expect((await deliver(id)).done).toBe(false)
    settled = 'gone'
    await store.endCode({ id, end: 'passed' })
    expect(await deliver(id)).toEqual({ done: true })
    expect(calls).toHaveLength(1)
    expect(await rowOf(id)).toMatchObject({ state: 'sent', provider: 'only', error: null })
  })

  test('its time in Redis ended just before the notice ends: too_late, because Redis lost nothing', async () => {
    const { guarded, calls } = guardedOf('only', [accepted])
    const id = await createdCode({ ttlMs: 2_500 })
    await untilDone(worker([guarded], { settleCode: async () => 'lost' }), id)
    expect(calls).toEqual([])
    expect(await rowOf(id)).toMatchObject({ state: 'expired', error: 'too_late' })
  })

  test('while it waited for a slot: it is not sent (I7)', async () => {
    const { guarded, calls, free } = blockedOf('slow', 1)
    const busy = worker([guarded])(await created())
    await eventually(() => calls.length === 1)
    let settled: 'current' | 'gone' = 'current'
    const id = await createdCode()
    let isInLine = false
    const inTurn: GuardedProvider['inTurn'] = (...asked) => {
      const end = guarded.inTurn(...asked)
      isInLine = true
      return end
    }
    const waiting = worker([{ ...guarded, inTurn }], { settleCode: async () => settled })(id)
    await eventually(() => isInLine)
    settled = 'gone'
    free()
    await Promise.all([busy, waiting])
    expect(calls).toHaveLength(1)
    expect(await rowOf(id)).toMatchObject({ state: 'expired', error: 'code_gone' })
  })
})

describe('an old worker meets what only a newer one knows (I27)', () => {
  test.for([
    ['a template', { template: 'of-tomorrow' }],
    ['a locale', { locale: 'tlh' }],
    ['variables sealed with a newer secret', { sealedParams: randomBytes(60) }],
    ['a format of rows', { format: 7 }],
  ] as const)('%s: pending, no try used, until the newer one takes it', async ([, facts]) => {
    const { guarded, calls } = guardedOf('a', [accepted])
    const { format = noticeFormat, ...given }: Partial<NewNotice> & { format?: number } = facts
    const id = await created(given)
    await pool.query('UPDATE notice SET format = $2 WHERE id = $1', [id, format])
    const settleCode = async () => 'lost' as const
    const verdict = await worker([guarded], { settleCode })(id)
    expect(verdict.done ? 0 : verdict.retryInMs).toBeGreaterThanOrEqual(1_000)
    expect(await rowOf(id)).toMatchObject({ state: 'pending', claims: 0, attempts: [] })
    expect(calls).toEqual([])
    // The template and locale that the newer worker knows.
    await pool.query(
      `UPDATE notice SET template = 'welcome', locale = 'en', sealed_params = $2, format = $3 WHERE id = $1`,
      [id, secrets.seal(JSON.stringify({ name: 'Ada' }), id), noticeFormat],
    )
    await untilDone(worker([guarded]), id)
    expect(await rowOf(id)).toMatchObject({ state: 'sent' })
  })

  test('a code of a format that it does not know: its code is not looked for, so it does not count as lost', async () => {
    const { guarded, calls } = guardedOf('a', [accepted])
    const id = await createdCode()
    await pool.query('UPDATE notice SET format = 9 WHERE id = $1', [id])
    const old = worker([guarded], { settleCode: async () => 'lost' })
    expect((await old(id)).done).toBe(false)
    expect(await rowOf(id)).toMatchObject({ state: 'pending', claims: 0, attempts: [] })
    await expectExpired(old, id, 'not_rendered')
    expect(calls).toEqual([])
  })

  test('a route: pending until its time ends, then expired with the reason', async () => {
    const deliver = worker([])
    const id = await created()
    expect((await deliver(id)).done).toBe(false)
    expect(await rowOf(id)).toMatchObject({ state: 'pending' })
    await expectExpired(deliver, id, 'no_route')
  })
})

test('a far end’s words that PostgreSQL does not take: written without them, the row ends (F32)', async () => {
  const bad = { kind: 'unavailable', detail: 'a NUL: \u0000' } as const
  const worse = { kind: 'accepted', messageId: 'id\u0000' } as const
  const { guarded } = guardedOf('a', [bad, worse])
  const id = await created()
  await untilDone(worker([guarded]), id)
  const row = await rowOf(id)
  expect(row).toMatchObject({ state: 'sent', provider: 'a', provider_message_id: null })
  expect(await outcomesOf(id)).toEqual(['a unavailable', 'a accepted'])
})

describe('answers of a provider', () => {
  const unknown: SendResult = { kind: 'unknown', detail: 'the answer was lost' }
  const retryInMs = (verdict: Verdict) => (verdict.done ? Number.NaN : verdict.retryInMs)
  const isOpenRow = { state: 'pending', finished_at: null, provider: null, error: null }

  test('accepted: sent, by whom and under which id, and the variables are gone from the row', async () => {
    const texts: Message[] = []
    const { guarded } = guardedOf('a', [
      async (message) => {
        texts.push(message)
        return accepted
      },
    ])
    const id = await created()
    expect(await worker([guarded])(id)).toEqual({ done: true })
    expect(await rowOf(id)).toMatchObject({
      state: 'sent',
      provider: 'a',
      provider_message_id: 'm1',
      sealed_params: null,
      error: null,
      due_at: null,
      sent_at: expect.any(Date),
      finished_at: expect.any(Date),
    })
    expect(texts).toMatchObject([
      {
        noticeId: id,
        channel: 'sms',
        to: '+8613800138000',
        template: 'welcome',
        locale: 'en',
        variables: { name: 'Ada' },
        text: 'Welcome, Ada! Your account is ready.',
      },
    ])
  })

  test('accepted without an id: sent, and counted, because a vendor that accepts everything may deliver nothing', async () => {
    const metrics = testMetrics('a', 'b')
    const { guarded } = guardedOf('a', [{ kind: 'accepted' }, accepted, { kind: 'accepted' }])
    const deliver = worker([guarded], { metrics })
    for (const id of [await created(), await created(), await created()]) {
      expect(await deliver(id)).toEqual({ done: true })
      expect(await rowOf(id)).toMatchObject({ state: 'sent' })
    }
    const { values } = await metrics.sendsWithoutId.get()
    expect(values.map(({ labels, value }) => [labels.provider, value])).toEqual([
      ['a', 2],
      ['b', 0],
    ])
    expect(await sendsOf(metrics)).toEqual({ 'a accepted': 3 })
  })

  test('invalid_recipient: failed at once, and no other provider is called', async () => {
    const [a, b] = [
      guardedOf('a', [{ kind: 'invalid_recipient', detail: 'no' }]),
      guardedOf('b', [accepted]),
    ]
    const id = await created()
    await worker([a.guarded, b.guarded])(id)
    expect(await rowOf(id)).toMatchObject({
      state: 'failed',
      error: 'invalid_recipient',
      provider: 'a',
      sent_at: null,
    })
    expect(b.calls).toEqual([])
  })

  test.for([
    ['unavailable', unavailable],
    ['rejected', rejected],
    ['throttled', tooFast(60_000)],
    ['postponed', postponed(60_000)],
  ] as const)('%s: the next provider sends it in the same pass', async ([outcome, answer]) => {
    const [a, b] = [guardedOf('a', [answer]), guardedOf('b', [accepted])]
    const id = await created()
    expect(await worker([a.guarded, b.guarded])(id)).toEqual({ done: true })
    expect(await outcomesOf(id)).toEqual([`a ${outcome}`, 'b accepted'])
    expect(await rowOf(id)).toMatchObject({ state: 'sent', provider: 'b', error: null })
  })

  test('unavailable everywhere: tried again after a pause that grows', async () => {
    const { guarded } = guardedOf('a', [unavailable])
    const deliver = worker([guarded])
    const id = await created()
    const first = retryInMs(await deliver(id))
    expect(first).toBeGreaterThanOrEqual(250)
    expect(first).toBeLessThanOrEqual(500)
    const second = retryInMs(await deliver(id))
    expect(second).toBeGreaterThanOrEqual(500)
    expect(second).toBeLessThanOrEqual(1_000)
    expect(await rowOf(id)).toMatchObject(isOpenRow)
  })

  test.for([
    ['unavailable', unavailable, 'provider_away'],
    ['postponed', postponed(), 'postponed'],
    ['throttled', tooFast(60_000), 'too_late'],
  ] as const)(
    '%s until its time ends: expired, and the reason names what it waited for',
    async ([, answer, error]) => {
      const { guarded } = guardedOf('a', [answer])
      const deliver = worker([guarded], { tries: 1 })
      const id = await created()
      expect((await deliver(id)).done).toBe(false)
      await expectExpired(deliver, id, error)
    },
  )

  test('its time ends while its provider postpones nearly all recipients: the reason is the provider, and without that the recipient', async () => {
    const a = gateless('a', [postponed()]).guarded
    const b = gateless('b', [postponed()]).guarded
    for (const [postponesAll, error] of [
      [true, 'provider_away'],
      [false, 'postponed'],
    ] as const) {
      const deliver = worker([a, { ...b, postponesAll: () => postponesAll }])
      const id = await created()
      expect((await deliver(id)).done).toBe(false)
      expect(await outcomesOf(id)).toEqual(['a postponed', 'b postponed'])
      await expectExpired(deliver, id, error)
    }
  })

  test('its time ends while the breaker keeps it away, never called: expired without a place in the line, the provider was away', async () => {
    let places = 0
    const deferred: Deferred = { kind: 'deferred', reason: 'circuit', retryInMs: 3_000 }
    const deliver = worker([
      {
        ...withTurns('a', async () => deferred),
        away() {
          places++
          return deferred
        },
        state: () => 'circuit',
      },
    ])
    const id = await created()
    expect(await deliver(id)).toEqual({ done: false, retryInMs: 3_000 })
    await expectExpired(deliver, id, 'provider_away')
    expect(places).toBe(0)
    expect((await rowOf(id)).attempts).toEqual([])
  })

  test('postponed: a pause that grows, or the one that was asked for; no try is used', async () => {
    const { guarded } = guardedOf('a', [postponed(), postponed(), postponed(90_000), accepted])
    const deliver = worker([guarded], { tries: 1 })
    const id = await created({ ttlMs: 3_600_000 })
    const pauses: number[] = []
    for (let pass = 0; pass < 3; pass++) {
      pauses.push(retryInMs(await deliver(id)))
      await endPausesOf(id)
    }
    expect(pauses[0]).toBeLessThanOrEqual(500)
    expect(pauses[1]).toBeGreaterThan(400)
    expect(pauses[2]).toBeGreaterThan(80_000)
    expect(pauses[2]).toBeLessThanOrEqual(90_000)
    expect(await rowOf(id)).toMatchObject(isOpenRow)
    expect((await deliver(id)).done).toBe(true)
    expect(await rowOf(id)).toMatchObject({ state: 'sent' })
  })

  test('postponed by the first provider while the second waits for its pace: the first is not called again before its time (I30)', async () => {
    const a = guardedOf('a', [postponed(90_000), accepted])
    const atItsPace: Deferred = { kind: 'deferred', reason: 'pace', retryInMs: 200 }
    const b = withTurns('b', async () => atItsPace)
    const id = await created({ ttlMs: 3_600_000 })
    for (let pass = 0; pass < 5; pass++) {
      // Each pass has another worker, so the row has to keep the time.
      const verdict = await worker([a.guarded, b])(id)
      expect(retryInMs(verdict)).toBe(200)
    }
    expect(a.calls).toHaveLength(1)
    expect(await rowOf(id)).toMatchObject(isOpenRow)
    const lone = retryInMs(await worker([a.guarded])(id))
    expect(lone).toBeGreaterThan(80_000)
    expect(lone).toBeLessThan(90_000)
    await endPausesOf(id)
    expect(await worker([a.guarded, b])(id)).toEqual({ done: true })
    expect(await outcomesOf(id)).toEqual(['a postponed', 'a accepted'])
  })

  test('the clock of a worker is wrong by an hour: the pause of a postponed message is by the clock of PostgreSQL (I24)', async () => {
    const { guarded } = guardedOf('a', [postponed(90_000), accepted])
    const id = await created({ ttlMs: 3_600_000 })
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000 })
    await worker([guarded])(id)
    vi.useRealTimers()
    const waitMs = retryInMs(await worker([guarded])(id))
    expect(waitMs).toBeGreaterThan(80_000)
    expect(waitMs).toBeLessThan(90_000)
  })

  test('sixty recipients are postponed: no breaker counts it, and no other recipient waits (I30)', async () => {
    const { guarded } = guardedOf('a', [
      async ({ to }) => (to === '+8613800138000' ? postponed() : accepted),
    ])
    const deliver = worker([guarded])
    for (let refused = 0; refused < 60; refused++) await deliver(await created())
    const id = await created({ recipient: '+8613800138001' })
    expect(await deliver(id)).toEqual({ done: true })
    expect(await outcomesOf(id)).toEqual(['a accepted'])
  })

  test('the last of five failures opens the breaker: the message comes back behind those that it keeps waiting, not after its own pause', async () => {
    const { guarded } = guardedOf('a', [unavailable])
    const deliver = worker([guarded])
    const id = await created()
    let waitMs = 0
    for (let call = 0; call < 5; call++) waitMs = retryInMs(await deliver(id))
    // Without the provider's answer the pause would be 4 to 8 s by now.
    expect(waitMs).toBeGreaterThan(3_000)
    expect(waitMs).toBeLessThanOrEqual(3_500)
  })

  test('while it waits for the second provider of one pass no worker holds it, and the answer of the first is written', async () => {
    const first = guardedOf('first', [unavailable])
    const seen: unknown[] = []
    const second = withTurns('second', async (message, wish) => {
      const { state, claims, attempts } = await rowOf(message.noticeId)
      seen.push({ state, claims, attempts: attempts.length })
      const call = async () => {
        seen.push((await rowOf(message.noticeId)).state)
        return accepted
      }
      return turns(call)(message, wish)
    })
    await worker([first.guarded, second])(await created())
    expect(seen).toEqual([{ state: 'pending', claims: 1, attempts: 1 }, 'sending'])
  })

  test('throttled: again when it may, those that were kept waiting first, and no try is used', async () => {
    const { guarded } = guardedOf('a', [tooFast(3_000)])
    const id = await created()
    const waitMs = retryInMs(await worker([guarded], { tries: 1 })(id))
    expect(waitMs).toBeGreaterThan(3_000)
    expect(waitMs).toBeLessThanOrEqual(3_500)
    expect(await rowOf(id)).toMatchObject(isOpenRow)
  })

  test('a pause is never longer than what is left of the notice’s time', async () => {
    // On a busy machine, a notice can end before its first call.
    await eventually(async () => {
      const { guarded } = guardedOf('a', [unavailable])
      const id = await created({ ttlMs: 200 })
      expect(retryInMs(await worker([guarded])(id))).toBeLessThanOrEqual(200)
    })
  })

  test('unknown: no other provider is called; what cannot be asked is tried once more, then failed', async () => {
    const [a, b] = [guardedOf('a', [unknown]), guardedOf('b', [accepted])]
    const deliver = worker([a.guarded, b.guarded])
    const id = await created()
    expect((await deliver(id)).done).toBe(false)
    expect(await rowOf(id)).toMatchObject(isOpenRow)
    expect(b.calls).toEqual([])
    await untilDone(deliver, id)
    expect(await rowOf(id)).toMatchObject({ state: 'failed', error: 'outcome_unknown' })
    expect([a.calls.length, b.calls.length]).toEqual([2, 0])
  })

  test('unknown, then its time ends: failed, because it may have arrived, not expired', async () => {
    const { guarded } = guardedOf('a', [unknown])
    const deliver = worker([guarded])
    const id = await created()
    expect((await deliver(id)).done).toBe(false)
    await endTimeOf(id)
    expect(await deliver(id)).toEqual({ done: true })
    expect(await rowOf(id)).toMatchObject({ state: 'failed', error: 'outcome_unknown' })
    expect(await outcomesOf(id)).toEqual(['a unknown'])
  })

  test('unknown, then a final refusal, or its code was used: failed, because it may have arrived', async () => {
    const [a, b] = [guardedOf('a', [unknown, rejected]), guardedOf('b', [unknown])]
    expect(await rowAtEnd([a])).toMatchObject({ state: 'failed', error: 'outcome_unknown' })
    let settled: 'current' | 'gone' = 'current'
    const deliver = worker([b.guarded], { settleCode: async () => settled })
    const id = await createdCode()
    expect((await deliver(id)).done).toBe(false)
    settled = 'gone'
    await untilDone(deliver, id)
    expect(await rowOf(id)).toMatchObject({ state: 'failed', error: 'outcome_unknown' })
    expect(b.calls).toHaveLength(1)
  })

  test('unknown, and each time the provider reports that it took nothing: no try is used, and the list stays short', async () => {
    const { guarded, calls } = gateless('a', [unknown])
    const query = async () => unavailable
    const deliver = worker([{ ...guarded, query }], { tries: 2 })
    const id = await created()
    for (let pass = 0; pass < 8; pass++) expect((await deliver(id)).done).toBe(false)
    expect(calls()).toBe(8)
    expect(await outcomesOf(id)).toEqual(['a not_taken'])
    expect((await rowOf(id)).attempts[0]).toMatchObject({ count: 8 })
  })

  test('its time ends before the first call: expired, no call', async () => {
    const { guarded, calls } = guardedOf('a', [accepted])
    const id = await created()
    await expectExpired(worker([guarded]), id, 'too_late')
    expect(calls).toEqual([])
  })

  test('not before its sendAt, however early its job comes', async () => {
    const { guarded, calls } = guardedOf('a', [accepted])
    const id = await created({ sendAt: new Date(Date.now() + 60_000) })
    const waitMs = retryInMs(await worker([guarded])(id))
    expect(waitMs).toBeGreaterThan(50_000)
    expect(waitMs).toBeLessThanOrEqual(61_000)
    expect(calls).toEqual([])
    expect(await rowOf(id)).toMatchObject({ state: 'pending', claims: 0 })
  })

  test('a notice that is final, or another worker’s, is left alone', async () => {
    const { guarded, calls } = guardedOf('a', [accepted])
    const deliver = worker([guarded])
    const [sent, held] = [await created(), await created()]
    await deliver(sent)
    await pool.query(
      `UPDATE notice SET state = 'sending', claims = 1, due_at = now() + interval '1 min' WHERE id = $1`,
      [held],
    )
    for (const id of [sent, held, newId()]) expect(await deliver(id)).toEqual({ done: true })
    expect(calls).toEqual([sent])
  })

  test('PostgreSQL was away for longer than a claim during a call: another job of the notice calls nothing (F12)', async () => {
    const { guarded, calls, free } = blockedOf('a')
    const deliver = worker([guarded])
    const id = await created()
    const first = deliver(id)
    await eventually(() => calls.length === 1)
    await pool.query(`UPDATE notice SET due_at = now() - interval '1 min' WHERE id = $1`, [id])
    expect(await worker([guarded])(id)).toEqual({ done: true })
    free()
    expect(await first).toEqual({ done: true })
    expect(calls).toEqual([id])
    expect(await outcomesOf(id)).toEqual(['a accepted'])
  })

  test('what the guarded provider gets: codes are urgent, how long there is, and whether there is another', async () => {
    const told: object[] = []
    const guarded = (name: string) =>
      withTurns(name, async (message, wish) => {
        const { isUrgent, ttlMs, hasOther } = wish
        told.push({ name, isUrgent, hasOther, isLong: ttlMs() > 50_000 && ttlMs() <= 60_000 })
        return turns(async () => unavailable)(message, wish)
      })
    const deliver = worker([guarded('a'), guarded('b')])
    await deliver(await created())
    await deliver(await createdCode())
    const one = { isLong: true, isUrgent: false }
    const two = { isLong: true, isUrgent: true }
    expect(told).toEqual([
      { name: 'a', hasOther: true, ...one },
      { name: 'b', hasOther: false, ...one },
      { name: 'a', hasOther: true, ...two },
      { name: 'b', hasOther: false, ...two },
    ])
  })

  test('a call gets the time that is left of the notice', async () => {
    let callLeftMs = 0
    const guarded = withTurns(
      'a',
      turns(async (ttlMs) => {
        callLeftMs = ttlMs
        return accepted
      }),
    )
    await worker([guarded])(await created({ ttlMs: 30_000 }))
    expect(callLeftMs).toBeGreaterThan(0)
    expect(callLeftMs).toBeLessThanOrEqual(30_000)
  })

  describe('it is claimed, and its slot does not come', () => {
    const claimedAt = (name: string, reason: Deferred['reason'], waitMs = 0) =>
      withTurns(name, async (_, { claim }) => {
        await claim()
        await new Promise((resolve) => setTimeout(resolve, waitMs))
        return { kind: 'deferred', reason, retryInMs: 3_000 }
      })

    test('no worker holds it any more, and no try was made', async () => {
      const id = await created()
      expect(retryInMs(await worker([claimedAt('a', 'busy')])(id))).toBe(3_000)
      expect(await rowOf(id)).toMatchObject({ state: 'pending', claims: 1, attempts: [] })
    })

    test('the provider has gone: the next one sends it', async () => {
      const [id, b] = [await created(), guardedOf('b', [accepted])]
      const deliver = worker([claimedAt('a', 'circuit'), b.guarded])
      expect((await deliver(id)).done).toBe(true)
      expect(await outcomesOf(id)).toEqual(['b accepted'])
    })

    test('its time ends: expired, and the provider never gets it (I7)', async () => {
      const id = await created({ ttlMs: 200 })
      await worker([claimedAt('a', 'busy', 250)])(id)
      expect(await rowOf(id)).toMatchObject({ state: 'expired', error: 'too_late', attempts: [] })
    })
  })

  test('held elsewhere or by its pace: no try, and back when the soonest of them opens', async () => {
    const held = (name: string, reason: Deferred['reason'], retryInMs: number) =>
      withTurns(name, async () => ({ kind: 'deferred', reason, retryInMs }))
    const id = await created()
    const both = worker([held('a', 'paused', 9_000), held('b', 'circuit', 4_000)])
    expect(retryInMs(await both(id))).toBe(4_000)
    const reversed = worker([held('b', 'circuit', 4_000), held('a', 'paused', 9_000)])
    expect(retryInMs(await reversed(id))).toBe(4_000)
    // A message that only waits for its turn does not go to another provider. For any other reason it does.
    const b = guardedOf('b', [accepted])
    expect(retryInMs(await worker([held('a', 'pace', 7_000), b.guarded])(id))).toBe(7_000)
    expect(b.calls).toEqual([])
    expect((await worker([held('a', 'quota', 7_000), b.guarded])(id)).done).toBe(true)
    expect(await outcomesOf(id)).toEqual(['b accepted'])
  })
})

describe('the answer to a claim is lost', () => {
  /** The store of a worker whose first claim is committed, or not, and gets no answer. */
  function losing(isCommitted: boolean) {
    let claims = 0
    return {
      ...store,
      async claim(asked: ClaimAsked) {
        claims += 1
        if (claims > 1) return store.claim(asked)
        if (isCommitted) await store.claim(asked)
        throw new Unavailable('postgresql', undefined)
      },
    }
  }

  test.for([
    ['it was committed', true],
    ['it was not committed', false],
  ] as const)(
    '%s: the notice is sent, with one attempt, and goes back on the queue',
    async ([, isCommitted]) => {
      const { guarded, calls } = guardedOf('a', [accepted])
      const id = await created()
      const added: string[] = []
      const deliver = worker([guarded], {
        store: losing(isCommitted),
        producer: { add: async (job) => void added.push(job.id) },
      })
      await expect(deliver(id)).rejects.toThrow(Unavailable)
      await eventually(
        async () => (await rowOf(id)).claims > 0 && (await rowOf(id)).state === 'pending',
      )
      await untilDone(deliver, id)
      expect(calls).toEqual([id])
      expect(await outcomesOf(id)).toEqual(['a accepted'])
      if (isCommitted) await eventually(() => expect(added).toEqual([id]))
    },
  )
})

test('an answer after the time limit: the claim is kept until then, no second try begins, and the answer counts', async () => {
  let answer = (_: SendResult) => {}
  const answered = new Promise<SendResult>((resolve) => {
    answer = resolve
  })
  const slow = withTurns(
    'slow',
    turns(() => answered),
  )
  const other = guardedOf('other', [accepted])
  const deliver = worker([slow, other.guarded], { timeoutMs: 20, answerTimeoutMs: 600_000 })
  const id = await created()
  const delivering = deliver(id)
  await eventually(async () => (await rowOf(id)).due_at.getTime() > Date.now() + 300_000)
  // The reconciler and another job find nothing to do.
  expect(await store.takeOverdue('notice', 1_000, 0, 15_000)).not.toContainEqual(
    expect.objectContaining({ id }),
  )
  expect(await worker([other.guarded])(id)).toEqual({ done: true })
  expect(await rowOf(id)).toMatchObject({ state: 'sending', attempts: [] })
  answer(accepted)
  expect(await delivering).toEqual({ done: true })
  expect(await outcomesOf(id)).toEqual(['slow accepted'])
  expect(other.calls).toEqual([])
})

describe('a recipient that is barred at one provider: an opt-out, or a list of the vendor', () => {
  const barred: SendResult = { kind: 'invalid_recipient', isBarredHere: true, detail: 'opt-out' }

  test('the next provider sends it, and the first is not called again', async () => {
    const [a, b] = [guardedOf('a', [barred]), guardedOf('b', [tooFast(1_000), accepted])]
    const id = await created()
    await deliverTwice(worker([a.guarded, b.guarded]), id)
    expect(await outcomesOf(id)).toEqual(['a invalid_recipient', 'b throttled', 'b accepted'])
    expect(a.calls).toEqual([id])
  })

  test.for([
    ['all providers', barred, 'invalid_recipient'],
    ['one, and the other rejects the message', rejected, 'rejected'],
  ] as const)('barred at %s: failed, with the reason', async ([, answer, error]) => {
    const [a, b] = [guardedOf('a', [barred]), guardedOf('b', [answer])]
    expect(await rowAtEnd([a, b])).toMatchObject({ state: 'failed', error })
    expect([a.calls.length, b.calls.length]).toEqual([1, 1])
  })
})

async function deliverTwice(deliver: (id: string) => Promise<Verdict>, id: string) {
  const first = await deliver(id)
  expect(first.done).toBe(false)
  await eventually(async () => (await deliver(id)).done)
}

// A countdown that goes on would extend the claim. It would be left open by this file, which fails then.
test('an error after the claim → it is thrown, and the countdown of the claim ends', async () => {
  const fails = withTurns('fails', async (_, { claim }) => {
    await claim()
    throw new Error('tracing of the host')
  })
  const id = await created({ ttlMs: 60_000 })
  const deliver = worker([fails], { timeoutMs: 600_000, answerTimeoutMs: 1_000 })
  await expect(deliver(id)).rejects.toThrow('tracing of the host')
  expect((await rowOf(id)).state).toBe('sending')
})
