/**
 * A code must never reach the phone of a stranger. Each vendor reads a number by its documentation. So the number that a
 * far end reads must be the recipient, for every country.
 */
import { createRequire } from 'node:module'
import {
  type CountryCode,
  getCountries,
  getExampleNumber,
  parsePhoneNumberFromString,
} from 'libphonenumber-js/max'
import { describe, expect, it } from 'vitest'
import { newId } from '../../src/base/ids.ts'
import * as aliyun from './cases/aliyun.ts'
import * as aliyunPnvs from './cases/aliyun-pnvs.ts'
import * as smpp from './cases/smpp.ts'
import * as tencent from './cases/tencent.ts'
import * as twilio from './cases/twilio.ts'
import * as vonage from './cases/vonage.ts'
import { type Conformance, type FarEnd, withProvider } from './conformance.ts'

const examples = createRequire(import.meta.url)('libphonenumber-js/examples.mobile.json')
const never = new AbortController().signal

/** The example of the country with other last digits, as far as they make a valid number. */
function numbersOf(country: CountryCode, count: number): string[] {
  const example = getExampleNumber(country, examples)?.number ?? ''
  const numbers = new Set([example])
  for (let tries = 0; tries < 50 && numbers.size < count; tries++) {
    const end = String(Math.floor(Math.random() * 10_000)).padStart(4, '0')
    const number = example.slice(0, -4) + end
    if (parsePhoneNumberFromString(number)?.isValid()) numbers.add(number)
  }
  return [...numbers].filter((number) => number !== '')
}

/** Numbers of North America with any area code. */
function northAmericans(count: number): string[] {
  const numbers = new Set(['+18624017194'])
  while (numbers.size < count) {
    const number = `+1${Math.floor(2e9 + Math.random() * 8e9)}`
    if (parsePhoneNumberFromString(number)?.isValid()) numbers.add(number)
  }
  return [...numbers]
}

const recipients = [
  ...getCountries().flatMap((country) => numbersOf(country, 2)),
  ...northAmericans(50),
]

type Case = Parameters<typeof withProvider<FarEnd & { port: number }>>[0] & {
  conformance: Pick<Conformance, 'message'>
}

const cases: [string, Case, RegExp?][] = [
  // Both kinds send to none of the numbers that the last column matches.
  ['aliyun', aliyun, /^\+1/],
  ['aliyun-pnvs', aliyunPnvs, /^\+(?!861\d{10}$)/],
  ['tencent', tencent],
  ['twilio', twilio],
  ['vonage', vonage],
  ['smpp', smpp],
]

describe('numbers of every country', () => {
  it.each(cases)(
    '%s: the vendor reads the number as the recipient, or gets none',
    async (_, given, left) => {
      await withProvider(given, async (provider, farEnd) => {
        const sent = await Promise.all(
          recipients.map(async (to) => {
            const message = { ...given.conformance.message, noticeId: newId(), to }
            return [to, (await provider.send(message, never)).kind] as const
          }),
        )
        const served = recipients.filter((to) => !left?.test(to))
        expect(farEnd.taken.map(({ to }) => to).sort()).toEqual([...served].sort())
        const others = sent.filter(([to]) => left?.test(to))
        expect(new Set(others.map(([, kind]) => kind))).toEqual(new Set(left ? ['rejected'] : []))
      })
    },
  )
})
