/**
 * The texts of HTTP answers by language. Every language is one table with the same names, so another language is another
 * table here and nothing else.
 */
import { en, type Words } from './words/en.ts'
import { zh } from './words/zh.ts'

export const words = { en, zh } satisfies Record<string, Words>

export type Language = keyof typeof words
export const languages = Object.keys(words) as readonly Language[]
export type FieldWord = keyof Words['fields']
export type DetailWord = keyof Words['details']

/** A list is joined by "or", as the language does it. */
export type Values = Readonly<Record<string, string | number | readonly string[]>>

/** A text with its values. A value that is not known stays as `{name}`. */
export function fill(text: string, language: Language, values: Values = {}): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = Object.hasOwn(values, name) ? values[name] : whole
    return typeof value === 'object' ? joined(value, language) : String(value)
  })
}

const lists = new Map<Language, Intl.ListFormat>()

function joined(parts: readonly string[], language: Language): string {
  const list = lists.get(language) ?? new Intl.ListFormat(language, { type: 'disjunction' })
  lists.set(language, list)
  return list.format(parts)
}
