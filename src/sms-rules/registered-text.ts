/**
 * Whether a text is the one that was registered. Carriers compare the whole text: only the variables may differ, and where
 * a variable names its type, also its value must fit.
 */
import { escaped } from './text-parts.ts'

/** A variable of a registered text: {#numeric#}, {#var#}, {{code}}, ${code} or {1}. */
const variable = /\{#(\w{1,32})#\}|\$?\{\{?\w{1,32}\}?\}/g

/** Values that fit a variable of this type. Other types fit any text. */
const values: Readonly<Record<string, string>> = {
  numeric: String.raw`\d+`,
  alphanumeric: '[A-Za-z0-9]{1,40}',
  url: String.raw`\S+`,
  urlott: String.raw`\S+`,
  cbn: String.raw`[\d+ -]+`,
  email: String.raw`\S+`,
}

/** A value that is not known yet. */
const unknownValue = String.raw`\{\{\w+\}\}`

/** A variable without a type, where each must name one of `tags`. */
export function untaggedIn(template: string, tags: readonly string[]): string | undefined {
  for (const [whole, tag] of template.matchAll(variable)) {
    if (tag === undefined || !tags.includes(tag)) return whole
  }
  return undefined
}

/** In words, what of the text is not as registered; undefined if it is. */
export function differenceOf(text: string, template: string): string | undefined {
  const spaced = (piece: string) => piece.replace(/\s+/g, ' ')
  const literals = spaced(template).split(/\{#\w{1,32}#\}|\$?\{\{?\w{1,32}\}?\}/)
  const tags = [...template.matchAll(variable)].map(([, tag = '']) => tag)
  const pattern = literals.map((literal, index) => {
    const tag = tags[index]
    const value = tag === undefined ? '' : `(?:${unknownValue}|${values[tag] ?? '[^]+?'})`
    return escaped(literal) + value
  })
  const sent = spaced(text).trim()
  if (new RegExp(`^${pattern.join('').trim()}$`).test(sent)) return undefined
  const missing = literals.map((literal) => literal.trim()).find((each) => !sent.includes(each))
  return missing
    ? `the text lacks "${missing}" of the registered text`
    : 'the text has more than the registered text, or a variable that does not fit its type'
}
