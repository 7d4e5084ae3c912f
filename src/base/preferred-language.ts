import { isLanguage, type Language, languages } from './words.ts'

/** Ten times the length that browsers send. */
const maxAcceptLanguageLength = 500

/**
 * The language of `words` with the highest `q`. The first one, English, if several are equal or all are absent.
 *
 * The header is split instead of matched by a pattern: strangers write it, and a pattern with two runs of spaces takes
 * quadratic time (I21).
 */
export function preferredLanguage(acceptLanguage: string | undefined): Language {
  if (!acceptLanguage || acceptLanguage.length > maxAcceptLanguageLength) return 'en'
  const liking: Partial<Record<Language, number>> = {}
  for (const range of acceptLanguage.toLowerCase().split(',', 20)) {
    const [tag = '', weight = 'q=1'] = range.split(';', 2).map((part) => part.trim())
    const language = tag.split('-', 1)[0] ?? ''
    if (!isLanguage(language)) continue
    if (!/^q=[01](\.\d{0,3})?$/.test(weight)) continue
    liking[language] = Math.max(liking[language] ?? 0, Number(weight.slice(2)))
  }
  let best: Language = 'en'
  for (const language of languages) {
    if ((liking[language] ?? 0) > (liking[best] ?? 0)) best = language
  }
  return best
}
