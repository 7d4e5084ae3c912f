/** The texts of the field in the languages of a bundle. In bundles, this file contains their values (build.ts). */
import { languages } from '../src/i18n/languages.ts'

export type TextName = keyof typeof languages.en.field

/** Each text in these languages, in their order, joined by `|`. */
export function textsIn(names: readonly string[]): Record<TextName, string> {
  const files = names.map((name) => languages[name as keyof typeof languages].field)
  const texts = { ...languages.en.field }
  for (const name of Object.keys(texts) as TextName[]) {
    texts[name] = files.map((file) => file[name]).join('|')
  }
  return texts
}

export const bundled: readonly string[] = Object.keys(languages)
export const texts = textsIn(bundled)
