import { expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { createIdempotency, type Idempotency } from '../../src/notice/idempotency.ts'
import type { Accepted, SendAsked } from '../../src/notice/message.ts'
import { createOncePerKey } from '../../src/notice/once-per-key.ts'
import type { Caller } from '../../src/rules/caller.ts'
import { databaseAt, testDatabase } from '../tools/database.ts'
import { closeLater } from '../tools/release.ts'
import { eventually } from '../tools/wait.ts'

const { url, pool } = await testDatabase()
const database = databaseAt(url, 4)
const idempotency = closeLater(createIdempotency(database))

const server: Caller = { app: 'shop', keyId: 'key', ip: '192.0.2.1', isPage: false, origins: [] }
const page: Caller = { ...server, isPage: true }
const asked = (idempotencyKey: string | undefined, more: object = {}): SendAsked => ({
  ...{ channel: 'sms', to: '+8613800138000', template: 'captcha', params: {} },
  ...{ idempotencyKey, ...more },
})
const accepted = (id: string): Accepted => ({
  ...{ outcome: 'accepted', id, channel: 'sms', to: '+8613****8000', state: 'pending' },
  ...{ expiresAt: '2026-11-23T00:00:00.000Z', resendAt: '2026-11-23T00:00:00.000Z' },
})

const keys = createOncePerKey(idempotency)
const begin = (key: string | undefined, more: object = {}, caller = server, on = keys) =>
  on.begin('captcha', asked(key, more), caller, on.answerBy())

type Args = Parameters<typeof begin>

/** A send that lasts until the test ends it. */
async function attempt(...args: Args) {
  const begun = await begin(...args)
  if ('outcome' in begun) expect.unreachable(begun.outcome)
  return { ...begun, id: await begun.newId() }
}
const outcomeOf = async (...args: Args) => {
  const begun = await begin(...args)
  return 'outcome' in begun ? begun.outcome : 'to be made'
}

test('without a key: an id each time, and nothing is kept', async () => {
  const [first, second] = [await attempt(undefined), await attempt(undefined)]
  expect(second.id).not.toBe(first.id)
  await first.end(accepted(first.id))
  expect((await pool.query('SELECT 1 FROM idempotency_key')).rows).toEqual([])
})

test('an accepted outcome is the repeat’s outcome; before that it is in progress; another content is another request', async () => {
  const first = await attempt('accepted')
  expect(await outcomeOf('accepted')).toBe('idempotency_in_progress')
  const { id } = first
  await first.end(accepted(id))
  expect(await begin('accepted')).toEqual(accepted(id))
  // Omitted members and the answer to a challenge do not make a different request.
  expect(await begin('accepted', { locale: undefined, challenge: 'x' })).toEqual(accepted(id))
  expect(await outcomeOf('accepted', { to: '+8613800138001' })).toBe('idempotency_key_reused')
  const notice = await keys.begin('notice', asked('accepted'), server, keys.answerBy())
  expect(notice).toEqual({ outcome: 'idempotency_key_reused' })
})

test.each([
  ['refused', { outcome: 'invalid_recipient', because: 'no_number' }],
  ['failed', undefined],
] as const)('a request that was %s frees its key', async (what, outcome) => {
  const first = await attempt(what)
  await first.end(outcome)
  expect(await outcomeOf(what, { to: '+8613800138001' })).toBe('to be made')
})

test('a server’s key belongs to its app, a page’s only to its API key', async () => {
  const first = await attempt('whose')
  await first.end(accepted(first.id))
  expect(await outcomeOf('whose', {}, { ...server, keyId: 'rotated' })).toBe('accepted')
  expect(await outcomeOf('whose', {}, { ...server, app: 'bank' })).toBe('to be made')
  expect(await outcomeOf('whose', {}, page)).toBe('to be made')
  expect(await outcomeOf('whose', {}, { ...page, keyId: 'other' })).toBe('to be made')
  const late = keys.answerBy()
  expect(await keys.isNew('whose', page, late)).toBe(false)
  expect(await keys.isNew('whose', { ...page, keyId: 'third' }, late)).toBe(true)
})

test('a request that never answered: a repeat is asked to adopt its notice; a repeat that cannot is bound to a new one', async () => {
  const { id: earlier } = await attempt('died')
  const letPass = () =>
    pool.query("UPDATE idempotency_key SET created_at = created_at - interval '31 s'")
  await letPass()
  const { id } = await attempt('died')
  expect(id).not.toBe(earlier)
  await letPass()
  const adopting = await begin('died')
  if ('outcome' in adopting) expect.unreachable(adopting.outcome)
  expect(adopting.earlierId).toBe(id)
  await adopting.end(accepted(id))
  // The earlier notice is the answer, and the key stays reserved for it.
  expect(await begin('died')).toEqual(accepted(id))
})

/** Not PostgreSQL. */
const fake = (over: object) =>
  ({ newNoticeId: newId, free: async () => {}, ...over }) as unknown as Idempotency

test.each([
  ['before it is done', false],
  ['after it is done', true],
])(
  'a key that was taken over, and its binding to a new notice fails %s: the key is free at once',
  async (when, isDone) => {
    const key = `unbound ${when}`
    const first = await attempt(key)
    await pool.query("UPDATE idempotency_key SET created_at = now() - interval '31 seconds'")
    const failing: Idempotency = {
      ...idempotency,
      async rename(...args) {
        if (isDone) await idempotency.rename(...args)
        throw new Error('connection lost')
      },
    }
    const begun = await begin(key, {}, server, createOncePerKey(failing))
    if ('outcome' in begun) expect.unreachable(begun.outcome)
    expect(begun.earlierId).toBe(first.id)
    await expect(begun.newId()).rejects.toThrow('connection lost')
    await begun.end(undefined)
    const repeat = await attempt(key)
    expect(repeat.earlierId).toBeUndefined()
  },
)

test('a flood of pages with Idempotency-Keys: two of them are with PostgreSQL at a time, 200 of an app wait, and no server and no page of another app is refused', async () => {
  const { promise: isBack, resolve: comeBack } = Promise.withResolvers<void>()
  let [asking, most, freed] = [0, 0, 0]
  const once = createOncePerKey(
    fake({
      async reserve(app: string) {
        if (app === 'server') return { kind: 'proceed' }
        asking += 1
        most = Math.max(most, asking)
        await isBack
        asking -= 1
        return { kind: 'proceed' }
      },
      free: async () => {
        freed += 1
      },
    }),
  )
  const sendAs = async (caller: Caller, key: string) => (await attempt(key, {}, caller, once)).id
  const pages = Promise.allSettled(
    Array.from({ length: 250 }, (_, at) => sendAs(page, `flood-${at}`)),
  )
  await eventually(() => asking === 2)
  expect(await sendAs({ ...server, app: 'server' }, 'flood-0')).toBeTypeOf('string')
  const otherPage = sendAs({ ...page, app: 'other' }, 'flood-0')
  comeBack()
  expect(await otherPage).toBeTypeOf('string')
  const outcomes = await pages
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(202)
  const refused = outcomes.filter((outcome) => outcome.status === 'rejected')
  expect(refused.map(({ reason }) => reason.part)).toEqual(Array(48).fill('postgresql'))
  expect(most).toBe(2)
  // Nothing was reserved for them, so nothing is freed.
  expect(freed).toBe(0)
  // There is room again.
  expect(await sendAs(page, 'later')).toBeTypeOf('string')
})

test('PostgreSQL does not answer in time: unavailable, and a possible reservation is freed', async () => {
  const freed: string[] = []
  const once = createOncePerKey(
    fake({
      newNoticeId: () => 'an id',
      reserve: () => new Promise(() => {}),
      free: async (_app: string, _key: string, id: string) => void freed.push(id),
    }),
  )
  const late = once.begin('captcha', asked('late'), server, performance.now() + 50)
  await expect(late).rejects.toMatchObject({ part: 'postgresql' })
  await eventually(() => freed.length > 0)
  expect(freed).toEqual(['an id'])
})

test('a page whose turn comes after its 503: nothing is reserved, so a repeat is not in progress', async () => {
  const { promise: isBack, resolve: comeBack } = Promise.withResolvers<void>()
  const reserved: string[] = []
  const once = createOncePerKey(
    fake({
      async reserve(_app: string, key: string) {
        reserved.push(key)
        await isBack
        return { kind: 'proceed' }
      },
    }),
  )
  const early = ['one', 'two'].map((key) => attempt(key, {}, page, once))
  const late = once.begin('captcha', asked('late'), page, performance.now() + 50)
  await expect(late).rejects.toMatchObject({ part: 'postgresql' })
  comeBack()
  await Promise.all(early)
  await attempt('next', {}, page, once)
  expect(reserved).toEqual(['key one', 'key two', 'key next'])
})
