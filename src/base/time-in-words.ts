import { inRoughUnits } from './durations.ts'

const unitNames = { s: 'second', m: 'minute', h: 'hour', d: 'day' } as const

/** One per language and unit. Making one costs as much as a whole refusal, or the rest of a message. */
const formats = new Map<string, Intl.NumberFormat>()

/** A number of units in the words of a language, with a space before Chinese characters. */
export function unitsInWords(count: number, unit: string, language: string): string {
  const key = `${language} ${unit}`
  const options = { style: 'unit', unit, unitDisplay: 'long' } as const
  const format = formats.get(key) ?? new Intl.NumberFormat(language, options)
  formats.set(key, format)
  return format.format(count).replace(/(\d)(?=\p{Script=Han})/u, '$1 ')
}

/** A wait in the words of a language, rounded up: `42 seconds`, `15 minutes`, `42 秒`. */
export function timeInWords(ms: number, language: string): string {
  const { count, unit } = inRoughUnits(ms)
  return unitsInWords(count, unitNames[unit], language)
}
