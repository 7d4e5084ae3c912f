/**
 * The files of data/, each read when it is first asked for. In the package `postern-sms-rules`, the build replaces this
 * file by one with all of them as JSON.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { parse } from 'yaml'
import type { CountryRules } from './facts.ts'

/** From dist/ too: the files stay where they are. */
const folder = new URL('../../src/sms-rules/data/', import.meta.url)

const read = new Map<string, CountryRules>()

/** The codes of the countries with rules: ISO 3166-1, two capitals. */
export const countries = (): string[] =>
  readdirSync(folder)
    .flatMap((file) => /^([A-Z]{2})\.yaml$/.exec(file)?.[1] ?? [])
    .sort()

/** The facts of a country; undefined if it has no file. */
export function rulesOf(country: string): CountryRules | undefined {
  if (!/^[A-Z]{2}$/.test(country)) return undefined
  if (!read.has(country) && countries().includes(country)) {
    read.set(country, parse(readFileSync(new URL(`${country}.yaml`, folder), 'utf8')))
  }
  return read.get(country)
}
