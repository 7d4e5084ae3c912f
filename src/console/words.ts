/** What the console says, in either language. The two hold the same words, or it does not compile. */
import { en } from './words/en.ts'
import { zh } from './words/zh.ts'

export type Words = typeof en
export type Language = 'en' | 'zh'

export const words: Readonly<Record<Language, Words>> = { en, zh }

/** Of words by a name that comes from a row: the name itself where a newer process has written one we don't know. */
export function wordFor(of: Readonly<Record<string, string>>, name: string): string {
  return Object.hasOwn(of, name) ? (of[name] as string) : name
}
