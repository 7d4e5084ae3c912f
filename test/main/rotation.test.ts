/**
 * The three steps of a rotation of SECRET (docs/operations.md). In each step, processes of one step work beside
 * processes of the next, and each accepts what the other made. F40 tests the same with processes under load.
 */
import { expect, test } from 'vitest'
import { createApiKeys } from '../../src/access/api-keys.ts'
import { everyApp } from '../../src/base/names.ts'
import { clientOf } from '../console/open-console.ts'
import { databaseAt, testDatabase } from '../tools/database.ts'
import { noLimits, type Postern, startPostern } from '../tools/postern.ts'
import { testRedis } from '../tools/redis.ts'

const on = { redis: await testRedis(), database: await testDatabase() }
const database = databaseAt(on.database.url, 1)
const operator = await createApiKeys(database).create({
  name: 'anna',
  app: everyApp,
  kind: 'operator',
})

const [before, after] = [
  'the secret before, of thirty-two bytes',
  'the secret after, of thirty-two bytes',
]
const prepared = { SECRET: before, SECRET_PREVIOUS: after }
const swapped = { SECRET: after, SECRET_PREVIOUS: before }
const pairs = [
  ['everywhere the old one → the new one beside it', { SECRET: before }, prepared],
  ['the new one beside it → swapped', prepared, swapped],
  ['swapped → the new one alone', swapped, { SECRET: after }],
] as const

let phone = 13_800_000_000
const freshPhone = () => `+86${phone++}`
/** A key of the environment is known only to processes with that variable. */
const shared = { BOOTSTRAP_SECRET_KEY: 'psk_of_all_processes_of_this_test' }

const policyFile = { policies: noLimits, code: { own: true } }

test.each(pairs)(
  '%s: codes, repeats, passes, pages, searches and sessions of either process are good at the other (I35)',
  async (_, first, second) => {
    const start = (env: object) => startPostern({ on, policyFile, env: { ...shared, ...env } })
    const both = await Promise.all([start(first), start(second)])
    for (const [maker, other] of [both, [...both].reverse()] as [Postern, Postern][]) {
      await expectGoodAt(maker, other)
    }
    await Promise.all(both.map(({ stop }) => stop()))
  },
)

async function expectGoodAt(maker: Postern, other: Postern): Promise<void> {
  const to = freshPhone()
  const asked = { channel: 'sms', to, scene: 'signup' }
  const { body: sent } = await maker.post('/v1/captchas', asked)
  // Sent by the worker of either step.
  const code = await other.codeFor(sent.id)
  const { body: checked } = await other.post('/v1/captchas/check', { ...asked, code })
  expect(checked).toMatchObject({ verified: true, id: sent.id })
  const verified = await maker.post('/v1/passes/verify', { pass: checked.pass, channel: 'sms', to })
  expect(verified.body).toMatchObject({ valid: true })
  const published = async ({ get }: Postern) =>
    (await get('/.well-known/jwks.json', { key: null })).body.keys.map(
      ({ kid }: { kid: string }) => kid,
    )
  expect(await published(maker)).toContain((await published(other))[0])

  const own = { ...asked, code: 'Own1' }
  const idempotencyKey = { headers: { 'idempotency-key': to } }
  const first = await maker.post('/v1/captchas', own, idempotencyKey)
  expect(first.status).toBe(202)
  const repeat = await other.post('/v1/captchas', own, idempotencyKey)
  expect(repeat).toMatchObject({ status: 202, body: { id: first.body.id } })
  const changed = await other.post('/v1/captchas', { ...own, code: 'Own2' }, idempotencyKey)
  expect(changed.body.code).toBe('idempotency_key_reused')

  const search = { channel: 'sms', to, limit: 1 }
  const { body: page } = await maker.post('/v1/notices/search', search)
  const { body: next } = await other.post('/v1/notices/search', {
    ...search,
    cursor: page.nextCursor,
  })
  expect(next.items).toMatchObject([{ id: sent.id }])

  const here = clientOf(maker)
  await here.signIn(operator.token)
  const found = await fetch(`${maker.adminUrl}/search`, {
    method: 'POST',
    redirect: 'manual',
    headers: { cookie: here.cookie(), origin: maker.adminUrl },
    body: new URLSearchParams({ q: to, csrf: await csrfOf(here) }),
  })
  const there = await fetch(other.adminUrl + found.headers.get('location'), {
    headers: { cookie: here.cookie() },
  })
  expect(there.status).toBe(200)
  expect(await there.text()).toContain(sent.id)
}

const csrfOf = async (client: ReturnType<typeof clientOf>) =>
  /name="csrf" value="([^"]+)"/.exec((await client.get('/')).text)?.[1] ?? ''
