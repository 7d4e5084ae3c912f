const hourMs = 3_600_000
const minuteMs = 60_000

/** `ttlMs` in words, by locale: "5 minutes", "5 分钟". Rounded down, so that no message promises too much. */
export function createValidityText(ttlMs: number): (locale: string) => string {
  const isShort = ttlMs < 2 * minuteMs && ttlMs !== minuteMs
  const [unit, unitMs] =
    ttlMs % hourMs === 0 ? ['hour', hourMs] : isShort ? ['second', 1_000] : ['minute', minuteMs]
  const count = Math.max(1, Math.floor(ttlMs / unitMs))
  // One per locale. Making a formatter costs more than the rest of a message.
  const texts = new Map<string, string>()
  return (locale) => {
    const text = texts.get(locale) ?? textIn(locale, unit, count)
    texts.set(locale, text)
    return text
  }
}

function textIn(locale: string, unit: string, count: number): string {
  const options = { style: 'unit', unit, unitDisplay: 'long' } as const
  // Adds a space between a number and Chinese characters, as in Postern's other texts.
  return (
    new Intl.NumberFormat(locale, options)
      .format(count)
      .replace(/(\d)(?=\p{Script=Han})/u, '$1 ')
      // One no-break space would make a whole SMS UCS-2, which has room for half as many characters.
      .replace(/\p{Zs}/gu, ' ')
  )
}

/** The same in minutes, rounded up. */
export const minutesOf = (ttlMs: number) => Math.ceil(ttlMs / minuteMs)
