import { unitsInWords } from '../base/time-in-words.ts'

const hourMs = 3_600_000
const minuteMs = 60_000

/** `ttlMs` in words, by locale: "5 minutes", "5 分钟". Rounded down, so that no message promises too much. */
export function createValidityText(ttlMs: number): (locale: string) => string {
  const isShort = ttlMs < 2 * minuteMs && ttlMs !== minuteMs
  const [unit, unitMs] =
    ttlMs % hourMs === 0 ? ['hour', hourMs] : isShort ? ['second', 1_000] : ['minute', minuteMs]
  const count = Math.max(1, Math.floor(ttlMs / unitMs))
  // One no-break space would make a whole SMS UCS-2, which has room for half as many characters.
  return (locale) => unitsInWords(count, unit, locale).replace(/\p{Zs}/gu, ' ')
}

/** The same in minutes, rounded up. */
export const minutesOf = (ttlMs: number) => Math.ceil(ttlMs / minuteMs)
