/**
 * The first page of the console over a real Postern: the figures of the operator's apps, current problems, and the
 * name of the key.
 */
import { describe, expect, test } from 'vitest'
import type { Delivery } from '../../src/console/delivery-page.ts'
import { type CountedHour, createLastDay } from '../../src/console/last-day.ts'
import { wrongNow } from '../../src/console/wrong-now.ts'
import { hourMs, type ProviderCounts } from '../../src/notice/hour-counts.ts'
import { eventually } from '../tools/wait.ts'
import { deadInHongKong, openConsole } from './open-console.ts'

const { postern, keys, createOperator, client } = await openConsole({
  policyFile: deadInHongKong,
})
const anna = client()
await anna.signIn((await createOperator()).token)
const { token: shopKey } = await keys.create({ name: 'shop', app: 'shop', kind: 'secret' })

/** The figure below a label. */
const figure = (text: string, label: string) =>
  new RegExp(`${label}(?:</a>)?<b>([^<]*)</b>`).exec(text)?.[1]

async function pass(to: string, key: string): Promise<void> {
  const { body } = await postern.post('/v1/captchas', { channel: 'sms', to }, { key })
  const code = await postern.codeFor(body.id)
  const check = { channel: 'sms', to, code }
  expect((await postern.post('/v1/captchas/check', check, { key })).status).toBe(200)
}

describe('over a real Postern', () => {
  test('an empty day: each part names what will be there, and the search is there', async () => {
    const { text } = await anna.get('/')
    expect(text).toContain('name="q"')
    expect(text).toContain('Each provider will have a chart here')
    expect(text).toContain('Rules that do will be listed here')
    expect(figure(text, 'Sent')).toBe('0')
    expect(figure(text, 'Median time to the provider')).toBe('–')
    const chinese = (await anna.get('/?language=zh')).text
    expect(chinese).toContain('最近 24 小时')
  })

  test('sent, refused by rule, typed right and how long it took; an operator of one app sees the figures of that app alone', async () => {
    await anna.get('/?language=en')
    await pass('+8613800138101', postern.key)
    await pass('+8613800138102', shopKey)
    await pass('+8613800138103', shopKey)
    const again = { channel: 'sms', to: '+8613800138102' }
    const refused = await postern.post('/v1/captchas', again, { key: shopKey })
    expect(refused.status).toBe(429)

    const ofShop = client()
    await ofShop.signIn((await createOperator({ name: 'shop desk', app: 'shop' })).token)
    const ofBank = client()
    await ofBank.signIn((await createOperator({ name: 'bank desk', app: 'bank' })).token)
    const figures = async (who: typeof anna) => {
      const { text } = await who.get('/')
      const labels = ['Sent', 'Refused by a rule', 'Codes typed right']
      return labels.map((label) => figure(text, label)).join(' ')
    }
    // A count that took long is kept for fifty times as long.
    const inTime = { withinMs: 90_000 }
    await Promise.all([
      eventually(async () => expect(await figures(anna)).toBe('3 1 3'), inTime),
      eventually(async () => expect(await figures(ofShop)).toBe('2 1 2'), inTime),
    ])
    expect(await figures(ofBank)).toBe('0 0 0')

    const { text } = await ofShop.get('/')
    expect(text).toMatch(/<td data-head="Rule"><span>captcha\.recipient<\/span>/)
    expect(text).toMatch(/<td data-head="Refused by a rule" class="number"><span>1<\/span>/)
    expect(text).toContain('Figures of the app shop alone')
    expect(text).toContain('aria-label="box: 2 sent, 0 failed or expired"')
    expect(figure(text, 'Median time to the provider')).toMatch(/^[\d.]+ (ms|s|min)$/)
    const bank = (await ofBank.get('/')).text
    expect(bank).not.toContain('captcha.recipient')
    expect(bank).not.toContain('aria-label="box')
  })

  test('PostgreSQL does not answer in time what waits: the search is there, and a sentence names what is missing', async () => {
    const holder = await postern.database.pool.connect()
    await holder.query('BEGIN; LOCK TABLE event IN ACCESS EXCLUSIVE MODE')
    const { status, text } = await anna.get('/')
    await holder.query('ROLLBACK')
    holder.release()
    expect(status).toBe(200)
    expect(text).toContain('name="q"')
    expect(text).toContain('did not tell in time what waits')
    expect(text).not.toContain('Messages are sent without delay')
    expect((await anna.get('/')).text).toContain('Messages are sent without delay')
  })

  test('an open breaker: which provider, since when, and a link to more', async () => {
    for (let n = 0; n < 12; n++) {
      const to = `+8526123${String(n).padStart(4, '0')}`
      await postern.post('/v1/captchas', { channel: 'sms', to })
    }
    const text = await eventually(async () => {
      const page = await anna.get('/')
      return page.text.includes('stopped calling the provider dead') && page.text
    })
    expect(text).toMatch(
      /<a href="\/delivery">[^<]*stopped calling the provider dead<\/a><\/strong> <span class="since quiet">since <time/,
    )
    expect(text).not.toContain('stopped calling the provider box')
  })

  test('the name of the key that is signed in stands on every page, also where something is missing', async () => {
    const paths = ['/', '/notices', '/delivery', '/rules', '/keys', '/events', '/operations', '/x']
    for (const path of paths) {
      expect((await anna.get(path)).text).toMatch(/Operator key: <\/span>anna<\/span>/)
    }
    expect((await client().get('/')).text).not.toContain('key-name')
  })

  test('rules in Chinese on Chinese pages, and in one form of table with the rest', async () => {
    const { text } = await anna.get('/rules?language=zh')
    expect(text).toContain(
      '同一应用的同一收件人和同一通道（已知浏览器或陌生人）每 60 秒最多 1 次，每 1 小时最多 5 次',
    )
    expect(text).not.toContain('At most')
    expect(text).not.toContain('<dl>')
    expect((await anna.get('/rules?language=en')).text).toContain('At most 1 per 60s')
  })
})

const nowMs = 1_000 * hourMs
const quiet: Delivery = {
  ...{ depths: [], oldestOpen: [], scheduled: 0, oldestEventSeconds: 0 },
  workers: [{ providers: { box: 'ready' } }],
}
const noDurations = { toProvider: new Map(), toReceipt: new Map() }
const hour = (providers: readonly ProviderCounts[], unnamed = 0) => ({
  ...{ providers, ...noDurations, isCut: false },
  decisions: [{ outcome: 'refused' as const, policy: 'captcha', rule: 'ip', count: 9, unnamed }],
})

/** The last of these hours is the current one. */
function dayOf(sentAndFailed: readonly (readonly [number, number])[]): CountedHour[] {
  return sentAndFailed.map(([sent, failed], at) => ({
    atMs: nowMs - (sentAndFailed.length - 1 - at) * hourMs,
    counts: hour([{ provider: 'box', sent, delivered: 0, failed }]),
  }))
}

const droppingDay = (unnamed: readonly number[]): CountedHour[] =>
  unnamed.map((count, at) => ({
    atMs: nowMs - (unnamed.length - 1 - at) * hourMs,
    counts: hour([], count),
  }))

describe('what is wrong now', () => {
  test('nothing', () => {
    expect(wrongNow(quiet, dayOf([[100, 3]]), nowMs)).toEqual([])
  })

  test('no worker; what is late, by kind and since; events that no receiver accepts', () => {
    const state: Delivery = {
      ...quiet,
      workers: [],
      oldestEventSeconds: 3_600,
      oldestOpen: [
        { kind: 'captcha', value: 90 },
        { kind: 'notice', value: 59 },
      ],
    }
    expect(wrongNow(state, [], nowMs)).toEqual([
      { name: 'noWorker', href: '/delivery' },
      {
        ...{ name: 'late', kind: 'captcha', sinceMs: nowMs - 90_000 },
        href: '/notices?state=pending&kind=captcha&age=all',
      },
      { name: 'events', sinceMs: nowMs - hourMs, href: '/events' },
    ])
  })

  test('a breaker that several workers have open: since the first of them; one of an earlier build knows no time', () => {
    const workers = [
      { providers: { box: 'circuit', far: 'circuit' }, openForMs: { box: 5_000 } },
      { providers: { box: 'circuit', far: 'ready' }, openForMs: { box: 9_000 } },
      { providers: { box: 'paused' } },
    ] as const
    expect(wrongNow({ ...quiet, workers }, [], nowMs)).toEqual([
      { name: 'breaker', provider: 'box', sinceMs: nowMs - 9_000, href: '/delivery' },
      { name: 'breaker', provider: 'far', sinceMs: undefined, href: '/delivery' },
    ])
  })

  test.each([
    [
      'two bad hours after a good one',
      [
        [90, 1],
        [5, 5],
        [0, 0],
        [2, 8],
      ],
      2,
      20,
    ],
    [
      'the whole day is bad',
      [
        [1, 9],
        [1, 9],
      ],
      1,
      10,
    ],
    [
      'good again within this hour',
      [
        [90, 1],
        [0, 50],
        [40, 0],
      ],
      undefined,
      44,
    ],
  ] as const)('a provider whose success fell: %s', (_, hours, since, percent) => {
    const [wrong] = wrongNow(quiet, dayOf(hours), nowMs)
    const sinceMs = since === undefined ? undefined : nowMs - since * hourMs
    const href = '/notices?state=failed'
    expect(wrong).toEqual({ name: 'failing', provider: 'box', percent, sinceMs, href })
  })

  test.each([
    [
      'too few to say',
      [
        [90, 1],
        [1, 8],
      ],
    ],
    [
      'nine of ten',
      [
        [90, 1],
        [90, 10],
      ],
    ],
    [
      'bad three hours ago',
      [
        [0, 100],
        [0, 0],
        [50, 0],
      ],
    ],
  ] as const)('a provider that is well: %s', (_, hours) => {
    expect(wrongNow(quiet, dayOf(hours), nowMs)).toEqual([])
  })

  test('records dropped: since the first of the hours in a row; not records of earlier today', () => {
    const wrong = (dropped: number[]) => wrongNow(quiet, droppingDay(dropped), nowMs)
    const href = '#refused'
    expect(wrong([0, 4, 9])).toEqual([{ name: 'dropped', sinceMs: nowMs - hourMs, href }])
    expect(wrong([1, 0, 4, 0])).toEqual([{ name: 'dropped', sinceMs: nowMs - hourMs, href }])
    expect(wrong([9, 9, 0, 0])).toEqual([])
    expect(wrong([2, 3])).toEqual([{ name: 'dropped', sinceMs: nowMs - hourMs, href }])
  })
})

describe('the price of a day', () => {
  test('one statement an hour and one at a time; hours that are over are not asked for again', async () => {
    let [underWay, most] = [0, 0]
    const asked: number[] = []
    const lastDay = createLastDay(async (_, fromMs) => {
      asked.push(fromMs)
      underWay += 1
      most = Math.max(most, underWay)
      await new Promise(setImmediate)
      underWay -= 1
      return hour([])
    })
    const [day] = await Promise.all([lastDay(undefined, nowMs), lastDay(['shop'], nowMs)])
    await lastDay(undefined, nowMs)
    expect(day).toHaveLength(24)
    expect(day.at(-1)?.atMs).toBe(nowMs)
    expect(day.every(({ counts }) => counts !== undefined)).toBe(true)
    await eventually(() => asked.length === 48)
    expect(most).toBe(1)
    // A new hour begins: it is counted, and the first hour of the day is dropped.
    const next = await lastDay(undefined, nowMs + hourMs + 5)
    expect(asked.slice(48)).toEqual([nowMs + hourMs])
    expect(next[0]?.atMs).toBe(nowMs - 22 * hourMs)
  })

  test('a database that is slow: the page has the hours that were counted, and the rest later', async () => {
    const waiting: (() => void)[] = []
    const lastDay = createLastDay(async (_, fromMs) => {
      if (fromMs < nowMs) await new Promise<void>((resolve) => waiting.push(resolve))
      return hour([])
    })
    const counted = async () =>
      (await lastDay(undefined, nowMs)).filter(({ counts }) => counts).length
    expect(await counted()).toBe(1)
    waiting.shift()?.()
    expect(await counted()).toBe(2)
  })

  test('a count that fails is reported, and the next page tries again', async () => {
    let isAway = true
    const lastDay = createLastDay(async () => {
      if (isAway) throw new Error('away')
      return hour([])
    })
    await expect(lastDay(undefined, nowMs)).rejects.toThrow('away')
    isAway = false
    expect((await lastDay(undefined, nowMs))[0]?.counts).toBeDefined()
  })
})
