/** Words of the console in both languages. A missing word in either language fails the type check. */
import { en } from './words/en.ts'
import { zh } from './words/zh.ts'

export type Words = typeof en
export type Language = 'en' | 'zh'

export const words: Readonly<Record<Language, Words>> = { en, zh }

/** The word for a name in a row of the database. A name that only a newer build knows is shown unchanged. */
export function wordFor(of: Readonly<Record<string, string>>, name: string): string {
  return Object.hasOwn(of, name) ? (of[name] as string) : name
}
