/** A language is one file, and it is complete: the keys of English, with the same values, in the forms of its grammar. */
import { expect, test } from 'vitest'
import { languages } from '../../src/i18n/languages.ts'
import { fill, type Text } from '../../src/i18n/text.ts'
import { fields } from '../../src/rules/key-fields.ts'
import { findFiles } from '../tools/source-files.ts'

type Part = Text | { readonly [name: string]: Part }

const isText = (part: Part): part is Text =>
  typeof part === 'string' || typeof part.other === 'string'

/** All texts by their place, such as `console.nav.home`. */
function textsIn(part: Part, place = ''): [string, Text][] {
  if (isText(part)) return [[place, part]]
  return Object.entries(part).flatMap(([name, inner]) =>
    textsIn(inner, place ? `${place}.${name}` : name),
  )
}

const formsOf = (text: Text) => (typeof text === 'string' ? { '': text } : text)
const valuesIn = (text: string) => [...new Set(text.match(/\{\w+\}/g) ?? [])].sort()

/** The plural forms that whole numbers need. */
function pluralForms(language: string): string[] {
  const rules = new Intl.PluralRules(language)
  return [...new Set(Array.from({ length: 1_001 }, (_, n) => rules.select(n)))].sort()
}

const english = new Map(textsIn(languages.en))
const others = Object.entries(languages).filter(([language]) => language !== 'en')

test('every file of src/i18n is a language of the list', () => {
  const files = findFiles('src/i18n/*.json').map((file) => file.slice(9, -5))
  expect(Object.keys(languages).sort()).toEqual(files)
  expect(Object.keys(languages)[0]).toBe('en')
})

test.each(others)('%s: the keys of English, and no others', (_, file) => {
  expect(textsIn(file).map(([place]) => place)).toEqual([...english.keys()])
})

test.each(Object.entries(languages))(
  '%s: no text is empty, and a plural has the forms of the language',
  (language, file) => {
    const forms = pluralForms(language)
    const wrong = textsIn(file).filter(([place, text]) => {
      const own = formsOf(text)
      const isPlural = typeof english.get(place) !== 'string'
      const hasForms = typeof text === 'string' || forms.every((form) => Object.hasOwn(own, form))
      const isKnown = Object.keys(own).every((form) => form === '' || forms.includes(form))
      const isEmpty = Object.values(own).some((form) => form.trim() === '')
      return isEmpty || isPlural !== (typeof text !== 'string') || !hasForms || !isKnown
    })
    expect(wrong).toEqual([])
    expect(new Intl.Locale(file.tag).language).toBe(language)
  },
)

test.each(Object.entries(languages))('%s: each text has the values of English', (_, file) => {
  const wrong = textsIn(file).flatMap(([place, text]) => {
    const [last = ''] = Object.values(formsOf(english.get(place) ?? '')).reverse()
    const wanted = valuesIn(last)
    return Object.entries(formsOf(text)).flatMap(([form, own]) => {
      // One thing can be written as a word.
      const needed = form === 'one' ? wanted.filter((value) => value !== '{n}') : wanted
      const values = valuesIn(own)
      const isRight =
        needed.every((value) => values.includes(value)) &&
        values.every((value) => wanted.includes(value))
      return isRight ? [] : [`${place}: ${own}`]
    })
  })
  expect(wrong).toEqual([])
})

test('every field of the catalogue has its noun for sentences', () => {
  expect(Object.keys(languages.en.rules.nouns)).toEqual(Object.keys(fields))
})

test('a plural by its value, also of a language with four forms; numbers as the language writes them', () => {
  const tries = { one: '{n} próba', few: '{n} próby', many: '{n} prób', other: '{n} próby' }
  const shown = [1, 2, 5, 22, 1.5].map((n) => fill(tries, 'pl', { n }))
  expect(shown).toEqual(['1 próba', '2 próby', '5 prób', '22 próby', '1,5 próby'])
  expect(fill('{n} of {all}, {what}', 'de', { n: 1_234, all: '1234' })).toBe(
    '1.234 of 1234, {what}',
  )
  expect(fill({ other: '{n} 次' }, 'zh', { n: 1 })).toBe('1 次')
})
