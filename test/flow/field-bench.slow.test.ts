/** The short form of `npm run bench -- field`: a day of eight people, played twice at once by its clock. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import parsePhoneNumber from 'libphonenumber-js/max'
import { expect, test } from 'vitest'
import { canMoveClocks } from '../../bench/field/clock.ts'
import { drawDay } from '../../bench/field/day.ts'
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
