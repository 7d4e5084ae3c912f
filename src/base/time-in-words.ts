import { inRoughUnits } from './durations.ts'

const unitNames = { s: 'second', m: 'minute', h: 'hour', d: 'day' } as const

/** A wait in the words of a language, rounded up: `42 seconds`, `15 minutes`, `42 秒`. */
export function timeInWords(ms: number, language: string): string {
  const { count, unit } = inRoughUnits(ms)
  const options = { style: 'unit', unit: unitNames[unit], unitDisplay: 'long' } as const
  const text = new Intl.NumberFormat(language, options).format(count)
  return text.replace(/(\d)(?=\p{Script=Han})/u, '$1 ')
}
