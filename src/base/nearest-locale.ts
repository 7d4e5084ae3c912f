/**
 * The edition of a text that a reader of a language understands best. Scripts come before countries: a reader in Hong Kong
 * reads the edition for Taiwan, and not the one in simplified characters. Between editions of one script, a reader in Angola
 * reads the one for Portugal, and not the one for Brazil.
 */

interface Tag {
  /** In canonical form, in lower case. */
  readonly name: string
  readonly language: string
  /** With the script that this language has in this country. */
  readonly script: string
  /** The region of the tag. Without one, the main region of the language. */
  readonly region: string
  /** Language, script and country. */
  readonly full: string
}

export const defaultLocale = 'en'

/** Real tags are shorter. The look-up of a tag of 16 kB would take quadratic time. */
const maxTagLength = 64

/**
 * Languages with two written forms that share a script: the regions of the one form. All other regions write the other. After
 * the language matching data of Unicode CLDR (https://github.com/unicode-org/cldr, languageInfo.xml).
 */
const regionsOfOneForm: Readonly<Record<string, readonly string[]>> = {
  en: ['AS', 'CA', 'GU', 'MH', 'MP', 'PH', 'PR', 'UM', 'US', 'VI'],
  es: ['150', 'EA', 'ES', 'GQ', 'IC', 'PH'],
  pt: ['BR'],
  zh: ['HK', 'MO'],
}

/** Languages whose readers also read another one. */
const relatives: Readonly<Record<string, string>> = { nn: 'no', yue: 'zh-Hant' }

/** `among` are valid tags. Undefined if none of them has the language. */
function nearestLocale(wanted: string, among: readonly string[]): string | undefined {
  const tag = tagOf(wanted)
  if (!tag) return undefined
  const editions = among.map((locale) => ({ locale, ...editionOf(locale) }))
  const ofLanguage = editions.filter(({ language }) => language === tag.language)
  const relative = relatives[tag.language]
  if (ofLanguage.length === 0) return relative ? nearestLocale(relative, among) : undefined
  const allOfScript = ofLanguage.filter(({ script }) => script === tag.script)
  const ofForm = allOfScript.filter(({ region = '' }) =>
    isSameForm(tag.language, region, tag.region),
  )
  const ofScript = ofForm.length > 0 ? ofForm : allOfScript
  for (const range of [...rangesOf(tag.name), ...rangesOf(tag.full)]) {
    const full = tagOf(range)?.full
    const found =
      ofScript.find(({ name }) => name === range) ?? ofScript.find((each) => each.full === full)
    if (found) return found.locale
  }
  return (ofScript[0] ?? ofLanguage[0])?.locale
}

/** The nearest. Otherwise the default: English, or the first. Undefined only if there are none. */
export function nearestOrDefault(wanted: string, among: readonly string[]): string | undefined {
  if (among.includes(wanted)) return wanted
  return nearestLocale(wanted, among) ?? among.find((each) => each === defaultLocale) ?? among[0]
}

/** Undefined if none has the script of the wanted language. */
export function nearestOfScript(wanted: string, among: readonly string[]): string | undefined {
  const found = nearestLocale(wanted, among)
  return found && tagOf(found)?.script === tagOf(wanted)?.script ? found : undefined
}

function isSameForm(language: string, one: string, other: string): boolean {
  const regions = regionsOfOneForm[language]
  return !regions || regions.includes(one) === regions.includes(other)
}

/** The tag in canonical form. Undefined for a text that is not a tag. */
export function canonicalLocale(text: string): string | undefined {
  try {
    return Intl.getCanonicalLocales(text)[0]
  } catch {
    return undefined
  }
}

/**
 * Reads the tag at the beginning of a text, and ignores the rest. Some platforms write `zh_CN`, `de_AT.UTF-8` or
 * `de;q=0.8`.
 */
function tagOf(text: string): Tag | undefined {
  const [written = ''] = /^[\w-]*/.exec(text.trimStart().slice(0, maxTagLength)) ?? []
  const given = written.toLowerCase().replaceAll('_', '-')
  const range = rangesOf(given).find((each) => canonicalLocale(each) !== undefined)
  if (!range) return undefined
  // Norwegian is written as `nb` and as `no`.
  const locale = new Intl.Locale(new Intl.Locale(range).baseName.replace(/^nb\b/, 'no'))
  const { language, script = '', region = '' } = locale.maximize()
  const full = [language, script, region].filter(Boolean).join('-').toLowerCase()
  return { name: locale.baseName.toLowerCase(), language, script, region, full }
}

/** The whole tag, then one subtag less each time (RFC 4647, 3.4). A single letter only introduces the next subtag. */
function rangesOf(tag: string): string[] {
  const ranges = []
  for (let rest = tag; rest !== ''; ) {
    ranges.push(rest)
    rest = rest.slice(0, Math.max(0, rest.lastIndexOf('-'))).replace(/-[a-z0-9]$/, '')
  }
  return ranges
}

/** The editions of all templates are few. */
const editionsRead = new Map<string, Tag | undefined>()

function editionOf(locale: string): Tag | undefined {
  if (!editionsRead.has(locale)) editionsRead.set(locale, tagOf(locale))
  return editionsRead.get(locale)
}
