import type { FieldWord, Values } from '../base/words.ts'

/** Why this text can't be a sent code; undefined if it can. */
export function formProblem(
  code: string,
  { length, own }: { length: number; own: boolean },
): [FieldWord, Values] | undefined {
  if (own) return /^[A-Za-z0-9]{4,10}$/.test(code) ? undefined : ['lettersOrDigits', {}]
  return code.length === length && /^[0-9]+$/.test(code) ? undefined : ['digits', { n: length }]
}
