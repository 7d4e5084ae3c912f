/** The sentence of a problem for people, with their next step. The code field has the same sentences. */
import { inRoughUnits } from './durations.ts'
import { type Problem, problems } from './problems.ts'

type Language = 'en' | 'zh'
type Sentence = string | Readonly<Record<Language, string>>

/** A message that came with the problem, such as the message of a rule, replaces the sentence of the catalogue. */
export function detailOf({ code, members }: Problem, language: Language): string {
  const { message = afterWrongCode(code, members) ?? problems[code] } = members
  const { retryAfterMs, lockedForMs } = members
  const sentence = message as Sentence
  const text = typeof sentence === 'string' ? sentence : sentence[language]
  const waitMs = Number(retryAfterMs ?? lockedForMs)
  if (Number.isNaN(waitMs)) return text
  return text
    .replace('{time}', timeIn(waitMs, language))
    .replace('{seconds}', String(Math.ceil(waitMs / 1_000)))
}

/** The next step after a wrong code. */
function afterWrongCode(code: string, members: Problem['members']): Sentence | undefined {
  if (code !== 'code_mismatch') return undefined
  const { triesLeft: n, lockedForMs } = members
  if (lockedForMs !== undefined)
    return {
      en: 'Too many wrong codes. Request a new one in {time}.',
      zh: '错误次数过多，请 {time}后重新获取验证码。',
    }
  if (n === 0)
    return {
      en: 'The code was wrong, and no try is left. Request a new one.',
      zh: '验证码错误，已无剩余次数，请重新获取。',
    }
  if (n === 1)
    return {
      en: 'The code is wrong. You have one try left.',
      zh: '验证码错误，还可再试 1 次。',
    }
  return typeof n === 'number'
    ? { en: `The code is wrong. You have ${n} tries left.`, zh: `验证码错误，还可再试 ${n} 次。` }
    : undefined
}

const unitNames = { s: 'second', m: 'minute', h: 'hour', d: 'day' } as const

/** Rounded up: `42 seconds`, `15 minutes`, `42 秒`. */
function timeIn(ms: number, language: Language): string {
  const { count, unit } = inRoughUnits(ms)
  const options = { style: 'unit', unit: unitNames[unit], unitDisplay: 'long' } as const
  const text = new Intl.NumberFormat(language, options).format(count)
  return text.replace(/(\d)(?=\p{Script=Han})/u, '$1 ')
}
