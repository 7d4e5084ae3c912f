/** Ten times the length that browsers send. */
const maxAcceptLanguageLength = 500

/**
 * English or Chinese, whichever has the higher `q`. English if both are equal or absent.
 *
 * The header is split instead of matched by a pattern: strangers write it, and a pattern with two runs of spaces takes
 * quadratic time (I21).
 */
export function preferredLanguage(acceptLanguage: string | undefined): 'en' | 'zh' {
  if (!acceptLanguage || acceptLanguage.length > maxAcceptLanguageLength) return 'en'
  const liking = { en: 0, zh: 0 }
  for (const range of acceptLanguage.toLowerCase().split(',', 20)) {
    const [tag = '', weight = 'q=1'] = range.split(';', 2).map((part) => part.trim())
    const language = tag.split('-', 1)[0]
    if (language !== 'en' && language !== 'zh') continue
    if (!/^q=[01](\.\d{0,3})?$/.test(weight)) continue
    liking[language] = Math.max(liking[language], Number(weight.slice(2)))
  }
  return liking.zh > liking.en ? 'zh' : 'en'
}
