/**
 * The texts for people by language. A language is one file of `src/i18n` and its line in `languages.ts`. The keys of
 * en.json are what the compiler knows, and every other language must have the same keys.
 *
 * A value such as `{n}` can stand anywhere in a text. Times, numbers and lists are written as the language does it.
 */
import { languages as files } from '../i18n/languages.ts'
import { fill as fillText, type Plural, type Text } from '../i18n/text.ts'

type Translated<Part> = Part extends string
  ? string
  : Part extends { other: string }
    ? Plural
    : { readonly [Name in keyof Part]: Translated<Part[Name]> }

export type Words = Translated<typeof files.en>
export type Language = keyof typeof files

export const words: Readonly<Record<Language, Words>> = files
export const languages = Object.keys(files) as readonly Language[]

export type FieldWord = keyof Words['fields']
export type DetailWord = keyof Words['details']

/** A list is joined by "or", as the language does it. */
export type Values = Readonly<Record<string, string | number | readonly string[]>>

export const isLanguage = (text: unknown): text is Language =>
  typeof text === 'string' && Object.hasOwn(files, text)

/** A text with its values. A value that is not known stays as `{name}`. */
export function fill(text: Text, language: Language, values: Values = {}): string {
  const entries = Object.entries(values)
  return fillText(
    text,
    language,
    Object.fromEntries(
      entries.map(([name, value]) => [
        name,
        typeof value === 'object' ? joined(value, language) : value,
      ]),
    ),
  )
}

const lists = new Map<Language, Intl.ListFormat>()

function joined(parts: readonly string[], language: Language): string {
  const list = lists.get(language) ?? new Intl.ListFormat(language, { type: 'disjunction' })
  lists.set(language, list)
  return list.format(parts)
}

/** A time with the short name of its unit: `90 s`, `15 min`, `15 分钟`. */
export const shortTime = (
  { count, unit }: { count: number; unit: keyof Words['units'] },
  language: Language,
): string => fill(words[language].units[unit], language, { n: count })

/** The name of a language, in itself or in another language: `中文`, `Chinese`. */
export const languageName = (language: Language, inLanguage: Language = language): string =>
  new Intl.DisplayNames(inLanguage, { type: 'language' }).of(language) ?? language
