/**
 * The English texts in the script, and the languages that the field can bring. In the bundle, this file contains their values
 * (build.ts).
 */
import { languages } from '../src/i18n/languages.ts'

export type TextName = keyof typeof languages.en.field

/**
 * The way to a pass, and errors without the service. The field brings all other texts, so that the script stays small. The
 * service describes each of its refusals too.
 */
const bundled =
  /^(sms|email)(Label|Given|Instead|Change|Sent|Empty)$|^(country|givenTo|send|sendIn|enterCode|again|againIn|codeLabel|sending|confirm|checking|passed|expired|offline|unavailable|setup|required)$/

export const english: Readonly<Partial<Record<TextName, string>>> = Object.fromEntries(
  Object.entries(languages.en.field).filter(([name]) => bundled.test(name)),
)
export const languageNames: readonly string[] = Object.keys(languages)
