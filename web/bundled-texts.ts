/** The English texts of the field, and the languages that it can bring. In the bundle, this file contains their values (build.ts). */
import { languages } from '../src/i18n/languages.ts'

export type TextName = keyof typeof languages.en.field

export const english: Readonly<Record<TextName, string>> = languages.en.field
export const otherLanguages: readonly string[] = Object.keys(languages).filter(
  (language) => language !== 'en',
)
