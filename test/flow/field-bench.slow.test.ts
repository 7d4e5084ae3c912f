/** The short form of `npm run bench -- field`: a day of eight people, played twice at once by its clock. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import parsePhoneNumber from 'libphonenumber-js/max'
import { expect, test } from 'vitest'
import { canMoveClocks } from '../../bench/field/clock.ts'
import { drawDay, type Visit } from '../../bench/field/day.ts'
import { play } from '../../bench/field/play.ts'
import type { Service } from '../../bench/field/service.ts'
import { repositoryRoot } from '../tools/source-files.ts'

test('field: the same seed draws the same day; where a country gets no SMS, its people use mail', () => {
  expect(drawDay(20, 7)).toEqual(drawDay(20, 7))
  expect(drawDay(20, 8)).not.toEqual(drawDay(20, 7))
  const countryOf = (to: string) => parsePhoneNumber(to)?.country
  const people = drawDay(200, 7).people.people ?? []
  expect(new Set(people.map(({ to }) => countryOf(to))).size).toBeGreaterThan(15)
  const inChina = drawDay(200, 7, ['CN']).people.people ?? []
  expect(inChina.map(({ atMs, ip }) => [atMs, ip])).toEqual(
    people.map(({ atMs, ip }) => [atMs, ip]),
  )
  expect(inChina.some(({ channel }) => channel === 'sms')).toBe(true)
  for (const { channel, to } of inChina) if (channel === 'sms') expect(countryOf(to)).toBe('CN')
})

test('field: a day in slices → people who ask again still wait for a minute', async () => {
  let nowMs = 0
  const [sentTo, sentAtMs]: [string[], number[]] = [[], []]
  const service: Service = {
    processes: [],
    async send({ to }) {
      sentTo.push(to)
      sentAtMs.push(nowMs)
      return { is: 'accepted' }
    },
    check: async () => ({ is: 'passed' }),
    async close() {},
  }
  const messagesTo = (to: string) =>
    sentTo.filter((one) => one === to).map(() => ({ code: '123456', atMs: 0 }))
  const visit = { channel: 'sms', atMs: 0, ip: '192.0.2.1', typingMs: 15_000 } as const
  const people: Visit[] = [
    { ...visit, to: '+8613800000001', habit: 'asks again' },
    { ...visit, to: '+8613800000002', habit: 'types' },
  ]
  const setTime = (atMs: number) => {
    nowMs = atMs
  }
  const day = { people: { people }, attackers: {}, sliceMs: 300_000 }
  await play(day, { service, provider: { messagesTo }, setTime })
  expect(sentAtMs).toEqual([0, 0, 65_000])
})

const missing = canMoveClocks() ? '' : ' (skipped: clocks move only on Linux, with a C compiler)'

test.skipIf(missing !== '')(
  `field: the same day, played twice → people pass, attackers cost, and the tables are equal${missing}`,
  async () => {
    const [one, other] = await Promise.all([playDay(), playDay()])
    expect(one).toEqual(other)
    expect(one.get('people who typed a right code in time')).toBe('100.0 %')
    expect(one.get('people refused')).toBe('0.0 %')
    expect(one.get('accepted messages that did not come')).toBe('0')
    // A bombed number gets ten messages a day at most, its owner's included.
    expect(Number(one.get('messages to a bombed number, of 16'))).toBeLessThanOrEqual(10)
    expect(Number(one.get('messages to rented numbers, of 16'))).toBe(16)
    // Three guesses at each code.
    expect(Number(one.get('guesses compared with a code'))).toBeGreaterThanOrEqual(12)
  },
)

/** Its table, without times. */
async function playDay(): Promise<ReadonlyMap<string, string>> {
  const args = ['bench/field.ts', '8', 'Postern, starter', 'day']
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: repositoryRoot })
  const rows = stdout.split('\n').map((line) => {
    const [, name = '', cell = ''] = line.split('|').map((part) => part.trim())
    return [name, cell] as const
  })
  return new Map(rows.filter(([name]) => name !== '' && !name.startsWith('ms ')))
}
