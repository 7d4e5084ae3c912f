/** The sentence of a problem for people, with their next step. The code field has the same sentences. */
import type { Problem } from './problems.ts'
import { timeInWords } from './time-in-words.ts'
import { type DetailWord, fill, type Language, words } from './words.ts'

/** A message that came with the problem, such as the message of a rule, replaces the sentence of the catalogue. */
export function detailOf({ code, members, says }: Problem, language: Language): string {
  const { message, retryAfterMs, lockedForMs, triesLeft } = members
  const { problems, details } = words[language]
  const word = says ?? afterWrongCode(code, members)
  const own = word ? details[word] : problems[code].detail
  const text = typeof message === 'string' ? message : own
  const waitMs = Number(retryAfterMs ?? lockedForMs)
  return fill(text, language, {
    ...(typeof triesLeft === 'number' ? { n: triesLeft } : {}),
    ...(Number.isNaN(waitMs)
      ? {}
      : { time: timeInWords(waitMs, language), seconds: String(Math.ceil(waitMs / 1_000)) }),
  })
}

/** The next step after a wrong code. */
function afterWrongCode(code: string, members: Problem['members']): DetailWord | undefined {
  const { triesLeft, lockedForMs } = members
  if (code !== 'code_mismatch') return undefined
  if (lockedForMs !== undefined) return 'wrongLocked'
  if (triesLeft === 0) return 'wrongLast'
  return typeof triesLeft === 'number' ? 'wrong' : undefined
}
