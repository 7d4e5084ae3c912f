/** A text in several forms, by the plural rules of its language. The value `n` decides which one is used. */
export type Plural = { readonly other: string } & {
  readonly [Form in Intl.LDMLPluralRule]?: string
}
export type Text = string | Plural
export type Values = Readonly<Record<string, string | number>>

/** One per language. Making one costs more than a text. */
const plurals = new Map<string, Intl.PluralRules>()

/** A text with its values. Numbers are written as the language does it. A value that is not known stays as `{name}`. */
export function fill(text: Text, language: string, values: Values = {}): string {
  return formOf(text, language, values).replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = Object.hasOwn(values, name) ? values[name] : whole
    return typeof value === 'number' ? value.toLocaleString(language) : String(value)
  })
}

function formOf(text: Text, language: string, { n }: Values): string {
  if (typeof text === 'string') return text
  const rules = plurals.get(language) ?? new Intl.PluralRules(language)
  plurals.set(language, rules)
  return text[rules.select(Number(n))] ?? text.other
}
