/** The table of decisions: rows are found again by their app and recipient, and have nothing readable about a person. */
import { expect, test } from 'vitest'
import { createSecrets } from '../../src/crypto/secrets.ts'
import type { Noted, Refusal } from '../../src/support/decision.ts'
import {
  beginReading,
  createDecisionLog,
  type DecisionRow,
} from '../../src/support/decision-log.ts'
import { databaseAt, testDatabase } from '../tools/database.ts'
import { fencesOf } from '../tools/markdown.ts'

const { url, pool } = await testDatabase()
const database = databaseAt(url, 2)
const secret = 'the first secret, of thirty-two bytes or more'
const secrets = createSecrets(secret)
const log = createDecisionLog(database, secrets)

let people = 0
/** Each test has another recipient. */
function newPerson() {
  people += 1
  return { app: 'shop', channel: 'sms', to: `+86138001380${10 + people}` } as const
}
type Person = ReturnType<typeof newPerson>
const ids = { notice: '01a20394-1bde-7203-9865-000000000001' }
const refusal = (more: Partial<Refusal> = {}): Refusal => ({
  ...{ policy: 'captcha', rule: 'recipient', window: '60s', retryAfterMs: 59_000 },
  ...more,
})
const noted = (person: Person, more: Partial<Noted>, ageMs = 0): Noted => ({
  ...{ ...person, outcome: 'refused', policy: 'captcha', times: 1 },
  atMs: performance.now() - ageMs,
  ...more,
})

test('refusals and checks: the latest first, with their times, of this recipient and app only', async () => {
  const person = newPerson()
  await log.write([
    noted(person, { refusal: refusal() }, 60_000),
    noted(person, { outcome: 'challenged', refusal: refusal({ rule: 'ip' }) }, 50_000),
    noted(person, { outcome: 'mismatch', policy: 'check' }, 40_000),
    noted(
      person,
      { outcome: 'locked', policy: 'check', refusal: refusal({ policy: 'check' }) },
      30_000,
    ),
    noted(
      person,
      { outcome: 'refused', policy: 'check', refusal: refusal({ policy: 'check' }) },
      20_000,
    ),
    noted(person, { outcome: 'passed', policy: 'check' }, 10_000),
    noted(person, { outcome: 'admitted' }),
    // An outcome of a later version.
    noted(person, { outcome: 'postponed' as 'passed' }),
    noted({ ...person, app: 'bank' as 'shop' }, { outcome: 'passed' }),
    noted({ ...person, channel: 'email' as 'sms' }, { outcome: 'passed' }),
  ])
  const { refusals, checks } = await log.find(person)
  expect(refusals).toMatchObject([
    { policy: 'check', isOfCheck: true },
    { policy: 'check', isOfCheck: true, lockBegan: true },
    { policy: 'captcha', rule: 'ip', challenge: true },
    { policy: 'captcha', rule: 'recipient', window: '60s', retryAfterMs: 59_000 },
  ])
  expect(refusals.at(-1)).not.toHaveProperty('challenge')
  // The guess that began a lock was compared.
  expect(checks.map(({ result }) => result)).toEqual(['passed', 'refused', 'mismatch'])
  const { rows } = await pool.query('SELECT extract(epoch FROM now())::float8 * 1000 AS now')
  const ageMs = rows[0].now - (refusals.at(-1)?.at.getTime() ?? 0)
  expect(ageMs).toBeGreaterThanOrEqual(60_000)
  expect(ageMs).toBeLessThan(90_000)
})

test('apps that know the recipient: only those asked for, in any of their secrets', async () => {
  const person = newPerson()
  await log.write([
    noted(person, { refusal: refusal() }),
    noted({ ...person, app: 'bank' as 'shop' }, { outcome: 'gone' }),
    noted({ ...person, app: 'quiet' as 'shop' }, { outcome: 'admitted' }),
  ])
  const hashes = secrets.recipientHashes(person.channel, person.to)
  expect((await log.appsOf(hashes, ['shop', 'bank', 'quiet', 'other'])).sort()).toEqual([
    'bank',
    'shop',
  ])
  expect(await log.appsOf(hashes, ['bank'])).toEqual(['bank'])
})

test('the values of a lock are found again, and no row has anything about a person in readable form (I14)', async () => {
  const person = newPerson()
  const fields = {
    ...{
      to: person.to,
      mailbox: person.to,
      ip: '198.51.100.77',
      prefix: '+861380013',
      app: 'shop',
    },
    ...{ channel: 'sms', country: 'CN', scene: '', dedupe: 'd'.repeat(32), price: 45 },
  }
  const lock = refusal({ policy: 'check', rule: 'guesses', values: ['198.51.100.77'] })
  await log.write([noted(person, { outcome: 'locked', policy: 'check', refusal: lock, fields })])
  expect((await log.find(person)).refusals).toMatchObject([{ values: ['198.51.100.77'] }])
  const { rows } = await pool.query('SELECT * FROM decision WHERE recipient_hash = $1', [
    secrets.recipientHash(person.channel, person.to),
  ])
  const [row] = rows
  expect(row.fields).toEqual({
    country: 'CN',
    ip: expect.any(String),
    prefix: expect.any(String),
    mailbox: expect.any(String),
    dedupe: expect.any(String),
  })
  expect(JSON.stringify(row)).not.toMatch(/198\.51|13800138|1380013|dddd/)
  // Another recipient's row cannot use the sealed values.
  const other = newPerson()
  await pool.query(
    'INSERT INTO decision SELECT at, app, channel, outcome, times, $1, policy, rule_policy, rule, rule_window, retry_after_ms, is_solved, notice_id, fields, sealed_values, share FROM decision WHERE recipient_hash = $2',
    [
      secrets.recipientHash(other.channel, other.to),
      secrets.recipientHash(person.channel, person.to),
    ],
  )
  expect((await log.find(other)).refusals[0]?.values).toBeUndefined()
})

test('after a rotation of the secret what was written before is still found; without it not', async () => {
  const person = newPerson()
  await log.write([noted(person, { outcome: 'mismatch' })])
  const next = 'the second secret, of thirty-two bytes or more'
  const by = (...keys: Parameters<typeof createSecrets>) =>
    createDecisionLog(database, createSecrets(...keys)).find(person)
  expect((await by(next, secret)).checks).toHaveLength(1)
  expect((await by(next)).checks).toEqual([])
})

test('an hour: each decision once, by rule and app, and how many have no recipient', async () => {
  const { rows } = await pool.query('SELECT extract(epoch FROM now())::float8 * 1000 AS now')
  const hourMs = 3_600_000
  const hourAt = rows[0].now - (rows[0].now % hourMs) - hourMs
  const person = { ...newPerson(), app: 'counted' as 'shop' }
  const within = rows[0].now - hourAt - 1_000
  const { to: _, ...counted } = noted(person, { refusal: refusal(), times: 40 }, within)
  await log.write([
    noted(person, { refusal: refusal(), times: 2 }, within),
    counted,
    noted(person, { outcome: 'passed', policy: 'check' }, within),
    noted({ ...person, app: 'counted too' as 'shop' }, { outcome: 'passed' }, within),
    noted(person, { refusal: refusal() }, within + 2_000),
  ])
  const of = async (apps?: string[]) =>
    (await log.countHour(apps, hourAt)).filter(({ outcome }) => outcome !== 'admitted')
  expect(await of(['counted'])).toEqual([
    { outcome: 'passed', policy: 'check', rule: null, count: 1, unnamed: 0 },
    { outcome: 'refused', policy: 'captcha', rule: 'recipient', count: 42, unnamed: 40 },
  ])
  expect(await of(['counted too'])).toHaveLength(1)
  // With too many rows, the latest are read, and all that only count.
  const little = await createDecisionLog(database, secrets, 1).countHour(undefined, hourAt)
  expect(little.reduce((all, { count }) => all + count, 0)).toBe(41)
  expect((await of()).find(({ outcome }) => outcome === 'refused')?.count).toBe(42)
})

test('for a replay: whole histories of a share of the recipients, in the order of time, and what is missing', async () => {
  const everyone = Array.from({ length: 60 }, () => ({ ...newPerson(), app: 'replayed' as 'shop' }))
  const levelOf = ({ channel, to }: Person) =>
    Math.clz32(secrets.recipientHash(channel, to).readInt32BE(0))
  const fields = { country: 'CN' }
  const late = { share: 1, outcome: 'admitted', fields, noticeId: ids.notice } as const
  const [few, fewest] = [1, 2].map((level) => everyone.filter((one) => levelOf(one) >= level))
  const { to: _, ...counted } = noted(everyone[0] as Person, { times: 7, refusal: refusal() })
  // The smallest share was before the counted time, and the limits need the sends of that time too.
  await log.write([
    ...everyone.map((one) => noted(one, { outcome: 'admitted', fields }, 30_000)),
    ...(fewest ?? []).map((one) => noted(one, { ...late, share: 2 }, 20_000)),
    ...(few ?? []).map((one) => noted(one, late, 10_000)),
    counted,
  ])
  const read = await database.onOwnConnection({ statementTimeoutMs: 10_000 }, async (client) => {
    const { decisions, ...facts } = await beginReading(client, 15_000, 3_600_000)
    const all: DecisionRow[] = []
    let patience: unknown
    for await (const one of decisions) {
      if (one.app === 'replayed') all.push(one)
      patience ??= (await client.query('SHOW idle_in_transaction_session_timeout')).rows[0]
    }
    return { ...facts, all, patience }
  })
  expect(read).toMatchObject({ oneOf: 4, unnamed: 7 })
  // A page of a flood takes some seconds to decide. PostgreSQL ends no connection for that.
  expect(read.patience).toEqual({ idle_in_transaction_session_timeout: '10min' })
  expect(read.all.map(({ hash }) => hash).sort()).toEqual(
    (fewest ?? [])
      .flatMap(({ channel, to }) => {
        const hash = secrets.recipientHash(channel, to).toString('hex').slice(0, 8)
        return [hash, hash, hash]
      })
      .sort(),
  )
  const times = read.all.map(({ atMs }) => atMs)
  expect(times).toEqual(times.toSorted((a, b) => a - b))
  expect(read.all.at(-1)).toMatchObject({ outcome: 'admitted', noticeId: ids.notice, fields })
})

test('the queries of docs/operations.md: their answers', async () => {
  await pool.query('TRUNCATE decision')
  const fields = { ip: '198.51.100.7', country: 'CN', scene: 'login' }
  const [one, two] = [newPerson(), newPerson()]
  await log.write([
    noted(one, { refusal: refusal(), times: 3, fields }),
    noted(two, { outcome: 'admitted', fields }),
    noted(two, { outcome: 'passed', fields }),
    noted(two, { outcome: 'mismatch', fields, times: 2 }),
  ])
  const [block] = fencesOf('docs/operations.md').filter(({ language }) => language === 'sql')
  const queries = (block?.text ?? '').split(';').filter((text) => text.trim() !== '')
  const answers = await Promise.all(queries.map(async (text) => (await pool.query(text)).rows))
  expect(answers).toMatchObject([
    [{ app: 'shop', rule_policy: 'captcha', rule: 'recipient', outcome: 'refused', sum: '3' }],
    [{ address: expect.any(String), recipients: '2', requests: '4', countries: ['CN'] }],
    [{ country: 'CN', scene: 'login', passed: '1', wrong: '2' }],
  ])
})
