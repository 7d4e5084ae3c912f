/** The facts have their sources, and every case that a regulator or vendor describes is judged as they describe. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { checkSms } from '../../src/sms-rules/check.ts'
import { countries, rulesOf } from '../../src/sms-rules/index.ts'
import { countryRules } from '../../src/sms-rules/schema.ts'
import { findFiles, readSource } from '../tools/source-files.ts'

const yearMs = 366 * 86_400_000

const smsCase = z.strictObject({
  sender: z.string(),
  text: z.string(),
  template: z.string().optional(),
  registered: z
    .strictObject({
      sender: z.boolean().optional(),
      template: z.boolean().optional(),
      link: z.boolean().optional(),
    })
    .optional(),
  finds: z.array(z.strictObject({ about: z.string(), is: z.string() })),
  source: z.url({ protocol: /^https?$/ }),
  blind: z.boolean().optional(),
})

const cases = findFiles('src/sms-rules/data/cases/*.yaml').flatMap((file) => {
  const country = /([A-Z]{2})\.yaml$/.exec(file)?.[1] ?? ''
  return z
    .array(smsCase)
    .parse(parse(readSource(file)))
    .map((each, index) => ({ country, ...each, name: `${country} ${index + 1}` }))
})

/** Each pair of `about` and `is` once, in order. */
const pairs = (found: readonly { about: string; is: string }[]) =>
  [...new Set(found.map(({ about, is }) => `${about} ${is}`))].sort()

test('every file follows the schema, and each fact has its source and the day on which it was read', () => {
  const old: string[] = []
  for (const country of countries()) {
    const rules = countryRules.parse(rulesOf(country))
    expect(rules.country).toBe(country)
    for (const { about, source, read } of rules.facts) {
      if (Date.now() - Date.parse(read) > yearMs) old.push(`${country} ${about}: ${read} ${source}`)
    }
  }
  if (old.length > 0) console.warn(`Facts older than a year. Read them again:\n${old.join('\n')}`)
})

test('the schema refuses a fact without source or date, an unknown word, and a consequence that is missing', () => {
  const fact = {
    about: 'sender',
    kind: 'long',
    is: 'works',
    source: 'https://a.test',
    read: '2026-11-27',
  }
  const holds = (change: object) =>
    countryRules.safeParse({ country: 'DE', name: 'Germany', facts: [{ ...fact, ...change }] })
      .success
  expect(holds({})).toBe(true)
  expect(holds({ source: undefined })).toBe(false)
  expect(holds({ source: 'a book' })).toBe(false)
  expect(holds({ read: undefined })).toBe(false)
  expect(holds({ is: 'maybe' })).toBe(false)
  expect(holds({ is: 'registered' })).toBe(false)
  expect(holds({ is: 'registered', unregistered: 'refused' })).toBe(true)
})

test('there are at least 40 countries and 150 cases, half of them written before the rules', () => {
  expect(countries().length).toBeGreaterThanOrEqual(40)
  expect(cases.length).toBeGreaterThanOrEqual(150)
  expect(cases.filter(({ blind }) => blind).length).toBeGreaterThanOrEqual(cases.length / 2)
  expect(new Set(cases.map(({ country }) => country))).toEqual(new Set(countries()))
})

test('every case finds what its source demands, and nothing else', () => {
  const wrong = cases.flatMap(({ name, finds, source, blind, ...sms }) => {
    const found = checkSms(sms)
    return String(pairs(found)) === String(pairs(finds))
      ? []
      : [{ name, sms, wanted: pairs(finds), found: found.map(({ message }) => message) }]
  })
  expect(wrong).toEqual([])
})

test('the README explains every kind of fact that the data have', () => {
  const readme = readFileSync(new URL('../../src/sms-rules/README.md', import.meta.url), 'utf8')
  const rules = [...readme.matchAll(/^\| `(\w+)`/gm)].map(([, about]) => about)
  const used = countries().flatMap((country) => rulesOf(country)?.facts.map(({ about }) => about))
  expect([...new Set(used)].filter((about) => !rules.includes(about))).toEqual([])
})
