/** Words of the console in both languages. A missing word in either language fails the type check. */
import { en } from './words/en.ts'
import { zh } from './words/zh.ts'

export type Words = typeof en
export type Language = 'en' | 'zh'

export const words: Readonly<Record<Language, Words>> = { en, zh }

/** The word for a name of a row. A name that a newer build wrote and this build does not know is shown unchanged. */
export function wordFor(of: Readonly<Record<string, string>>, name: string): string {
  return Object.hasOwn(of, name) ? (of[name] as string) : name
}
