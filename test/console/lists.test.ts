/** The lists of the console, with real rows: contents, filters and pages, and the pages while a server is away. */
import { describe, expect, test } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import { createBrowse } from '../../src/notice/browse.ts'
import { databaseAt } from '../tools/database.ts'
import { insertNotices } from '../tools/notices.ts'
import { eventually } from '../tools/wait.ts'
import { deadInHongKong, openConsole } from './open-console.ts'

const { postern, createOperator, client } = await openConsole({
  policyFile: deadInHongKong,
})
const anna = client()
await anna.signIn((await createOperator()).token)
const { pool } = postern.database
const number = (n: number, country = '+8613800') => `${country}${String(n).padStart(6, '0')}`
const send = (to: string) => postern.post('/v1/captchas', { channel: 'sms', to })

/** Rows in their final states, without sending. */
const insert = (count: number, over: { state?: string; template?: string; app?: string } = {}) =>
  insertNotices(
    pool,
    Array.from({ length: count }, (_, at) => ({
      ...{ id: newId(Date.now() - 3_600_000 * 2 - at), channel: 'email' },
      ...{ recipient: 'ada@example.com', template: 'order', state: 'failed', provider: 'box' },
      ...{ error: 'rejected', finished_at: new Date(), ...over },
    })),
  )

describe('notices', () => {
  test('by state, kind, template, provider and age; a choice that is none shows all', async () => {
    await insert(3)
    await insert(2, { state: 'expired', template: 'invoice' })
    const rows = async (query: string) =>
      ((await anna.get(`/notices?${query}`)).text.match(/<tr>/g)?.length ?? 1) - 1
    expect(await rows('state=failed')).toBe(3)
    expect(await rows('state=expired&template=invoice&kind=notice&provider=box')).toBe(2)
    expect(await rows('state=expired&template=order')).toBe(0)
    expect(await rows('kind=captcha')).toBe(0)
    expect(await rows('age=hour')).toBe(0)
    expect(await rows('state=nonsense&age=constructor&until=never&cursor=x')).toBe(5)
    const until = new Date(Date.now() - 5 * 3_600_000).toISOString().slice(0, 16)
    expect(await rows(`until=${until}`)).toBe(0)
    const { text } = await anna.get('/notices?state=failed')
    expect(text).toContain('a***@example.com')
    expect(text).toContain('Every provider of the route rejected')
    expect(text).toContain('<option value="failed" selected>')
  })

  test('page by page, each once', async () => {
    await insert(120, { template: 'paged' })
    const seen: string[] = []
    let path: string | undefined = '/notices?template=paged&state=failed'
    let pages = 0
    while (path) {
      const { text } = await anna.get(path)
      seen.push(...[...text.matchAll(/href="\/notices\/([\w-]+)"/g)].map(([, id]) => id as string))
      pages += 1
      const next: string | undefined = /href="([^"]+)">Older/.exec(text)?.[1]
      path = next?.replaceAll('&#38;', '&')
    }
    expect(pages).toBe(3)
    expect(seen).toHaveLength(120)
    expect(new Set(seen).size).toBe(120)
  })
})

test('a rare state among many rows: a page looks through so many and no more, and the next goes on from there', async () => {
  const database = databaseAt(postern.database.url, 1)
  await insertNotices(
    pool,
    Array.from({ length: 20_500 }, (_, n) => ({
      id: `${(1_000_001 + n).toString(16).padStart(8, '0')}-0000-7000-8000-000000000000`,
      ...{ app: 'many', template: 'bulk', state: n === 0 ? 'failed' : 'sent' },
    })),
  )
  const { browse } = createBrowse(database)
  const filter = { state: 'failed', apps: ['many'], limit: 50 } as const
  const from = '00000000-0000-0000-0000-000000000000'
  const before = '10000000-0000-0000-0000-000000000000'
  const first = await browse({ ...filter, from, before: '00ffffff-0000-7000-8000-000000000000' })
  expect(first).toMatchObject({ items: [], lookedAt: 20_000 })
  const second = await browse({ ...filter, from, before: first.next ?? before })
  expect(second.items).toHaveLength(1)
  expect(second.lookedAt).toBe(500)
  expect(second.next).toBe(undefined)
})

test('an operator of one app sees nothing of the others: neither how many were searched, nor where the search ended', async () => {
  await insert(2, { app: 'few' })
  const id = '00000001-0000-7000-8000-000000000000'
  await insertNotices(pool, [{ id, app: 'few', template: 'deep', state: 'sent' }])
  const ofFew = client()
  await ofFew.signIn((await createOperator({ name: 'few', app: 'few' })).token)
  const first = (await ofFew.get('/notices?age=all')).text
  expect(first.match(/<tr>/g)).toHaveLength(3)
  expect(first).not.toContain('Searched ')
  expect((await anna.get('/notices?age=all&template=deep')).text).toContain('Searched ')
  const next = /href="([^"]+)">Older/.exec(first)?.[1]?.replaceAll('&#38;', '&') as string
  expect(next).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-7/)
  const second = (await ofFew.get(next)).text
  expect(second.match(/<tr>/g)).toHaveLength(2)
  expect(second).toContain('deep')

  const database = databaseAt(postern.database.url, 1)
  const { latestByProvider } = createBrowse(database)
  expect(await latestByProvider(['few'])).toEqual([{ provider: 'box', state: 'failed', count: 2 }])
  const all = await latestByProvider(undefined)
  expect(all.find(({ state }) => state === 'failed')?.count).toBeGreaterThan(2)
  const delivery = (await ofFew.get('/delivery')).text
  const counts = (text: string) => [...text.matchAll(/<\/span> (\d+) /g)].map(([, count]) => count)
  expect(counts(delivery)).toEqual(['2'])
})

test('delivery: queues, the worker that runs, the pace, and what is kept away from', async () => {
  await send(number(1))
  for (let n = 0; n < 12; n++) await send(number(n, '+85261'))
  const text = await eventually(async () => {
    const page = await anna.get('/delivery')
    return page.text.includes('stopped after failures') && page.text
  })
  expect(text).toContain('1 worker is running.')
  expect(text).toContain('dead: stopped after failures')
  expect(text).toContain('1 of 1 workers')
  expect(text).toMatch(/50 per 1s <span class="quiet">\d+ \/ 50/)
  expect(text).toMatch(/<td data-head="Channel"><span>SMS/)
})

test('an operator of one app sees whether the service as a whole flows, and no counts of what others send', async () => {
  const ofFew = client()
  await ofFew.signIn((await createOperator({ name: 'few', app: 'few' })).token)
  const counts = /Scheduled for later|data-head="Channel"|\d \/ 50/
  for (const path of ['/', '/delivery']) {
    expect((await anna.get(path)).text).not.toContain('the whole service')
    expect((await ofFew.get(path)).text).toContain('the whole service')
  }
  const few = (await ofFew.get('/delivery')).text
  expect((await anna.get('/delivery')).text).toMatch(counts)
  expect(few).not.toMatch(counts)
  expect(few).toContain('Oldest unsent · notice')
  expect(few).toContain('1 worker is running.')
  expect(few).toContain('50 per 1s')
})

test('keys: kinds, apps and state, and none of a key but its beginning', async () => {
  const { id, token } = await createOperator({ name: 'carl' })
  const { text } = await anna.get('/keys')
  expect(text).toContain('carl')
  expect(text).toContain('every app')
  expect(text).toContain(`${token.slice(0, 10)}…`)
  expect(text).not.toContain(token.slice(0, 12))
  expect(text).not.toContain(postern.key)
  expect(text).not.toContain(id.toUpperCase())
})

test('events that wait, and what support did: page by page, each once, and events without what they carry', async () => {
  await pool.query(
    `INSERT INTO event (app, type, data, due_at)
     SELECT 'default', 'notice.sent', '{"to": "secret-of-an-event"}', now() + interval '1 day'
     FROM generate_series(1, 60)`,
  )
  await pool.query(
    `INSERT INTO operation (app, recipient_hash, key_id, what, reason)
     SELECT 'default', '\\x00', gen_random_uuid(), '{limits}', 'ticket ' || number
     FROM generate_series(1, 60) number`,
  )
  for (const path of ['/events', '/operations']) {
    const first = await anna.get(path)
    expect(first.text.match(/<tr>/g)).toHaveLength(51)
    expect(first.text).not.toContain('secret-of-an-event')
    expect(first.text).not.toContain('>Newest')
    const next = /href="([^"]+)">Older/.exec(first.text)?.[1] as string
    const second = await anna.get(next)
    expect(second.text.match(/<tr>/g)).toHaveLength(11)
    expect(second.text).toContain(`<a href="${path}?">Newest`)
    const tickets = `${first.text}${second.text}`.match(/ticket \d+/g)
    expect(new Set(tickets).size).toBe(path === '/events' ? 0 : 60)
  }
})

test.each([
  '/notices/x',
  '/notices/019aa000-0000-4000-8000-000000000000',
  '/notices/%00',
  '/notices/%2B8613812345678',
  '/notices?until=%2B200000-01-01T00:00',
  '/notices?until=%2B275760-09-13T00:00',
  '/notices?template=%00&provider=%27%20OR%201=1',
  '/notices?cursor=%00',
  '/story/x?app=%00',
  '/%E0%A4%A',
  '/operations?cursor=999999999999999.01a20454-0000-7000-8000-000000000000',
])('%s: with anything in an address, Postern does not fail', async (path) => {
  expect((await anna.get(path)).status).toBeLessThan(500)
})

test('delivery: carriers reject messages → the country with its share and the rules that may explain it, for the apps of the operator', async () => {
  const page = async (of: typeof anna) => (await of.get('/delivery')).text
  expect(await page(anna)).not.toContain('Rejected by carriers')
  const code = (app: string, recipient: string, state: 'sent' | 'failed') => ({
    ...{ app, kind: 'captcha', recipient, state },
    error: state === 'failed' ? 'rejected' : null,
  })
  await insertNotices(pool, [
    code('few', '+919812345678', 'failed'),
    code('few', '+919812345679', 'sent'),
    code('few', '+4915112345678', 'sent'),
    code('other', '+6591234567', 'failed'),
  ])
  const all = await page(anna)
  expect(all).toContain('India')
  expect(all).toContain('1 of 2')
  expect(all).toContain('only registered, otherwise refused')
  expect(all).toContain('Singapore')
  expect(all).not.toContain('Germany')
  const ofFew = client()
  await ofFew.signIn((await createOperator({ name: 'few', app: 'few' })).token)
  expect(await page(ofFew)).toContain('India')
  expect(await page(ofFew)).not.toContain('Singapore')
})

test('delivery: what people type, by provider and country, for the apps of the operator; open codes do not count', async () => {
  const code = (recipient: string, leftS: number, code_end: string | null) => ({
    ...{ app: 'few', kind: 'captcha', channel: 'sms', recipient, state: 'sent', code_end },
    ...{ provider: 'carrier', sent_at: new Date() },
    expires_at: new Date(Date.now() + leftS * 1_000),
  })
  await insertNotices(pool, [
    code('+4915112345678', -1, 'passed'),
    code('+4915112345679', 300, 'passed'),
    code('+4915112345677', -1, null),
    code('+4915112345676', 300, null),
    code('+4915112345675', -1, 'canceled'),
    { ...code('ada@example.com', -1, null), app: 'other', channel: 'email' },
  ])
  const rowsOf = async (of: typeof anna) => {
    const { text } = await of.get('/delivery')
    const section = /What people type[\s\S]*?<\/section>/.exec(text)?.[0] ?? ''
    return section.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ')
  }
  expect(await rowsOf(anna)).toMatch(/carrier Germany 2 of 3 .*carrier – 0 of 1/)
  const ofFew = client()
  await ofFew.signIn((await createOperator({ name: 'few-typed', app: 'few' })).token)
  expect(await rowsOf(ofFew)).toContain('Germany 2 of 3')
  expect(await rowsOf(ofFew)).not.toContain('0 of 1')
})
