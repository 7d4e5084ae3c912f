/**
 * Whether a text is the one that was registered. Carriers compare the whole text: only the variables may differ, and where
 * a variable names its type, also its value must fit.
 */
/** A variable of a registered text: {#numeric#}, {#var#}, {{code}}, ${code} or {1}. */
const variable = /\{#(\w{1,32})#\}|\$?\{\{?\w{1,32}\}?\}/g

/** The characters of a value that fits a variable of this type. Other types fit any text. */
const characters = new Map([
  ['numeric', /\d/],
  ['alphanumeric', /[A-Za-z0-9]/],
  ['url', /\S/],
  ['urlott', /\S/],
  ['cbn', /[\d+ -]/],
  ['email', /\S/],
])
const maxAlphanumeric = 40

/** A value that is not known yet. */
const unknownValue = /\{\{\w{1,64}\}\}/y

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
  const literals = spaced(template.trim()).split(/\{#\w{1,32}#\}|\$?\{\{?\w{1,32}\}?\}/)
  const tags = [...template.matchAll(variable)].map(([, tag = '']) => tag)
  const sent = spaced(text).trim()
  // The places up to which the text is as registered. An expression with many variables could take days.
  let ends: readonly number[] = [0]
  for (const [index, literal] of literals.entries()) {
    ends = ends.flatMap((at) => (sent.startsWith(literal, at) ? [at + literal.length] : []))
    const tag = tags[index]
    if (tag !== undefined) ends = endsOfValue(sent, ends, tag)
  }
  if (ends.includes(sent.length)) return undefined
  const missing = literals.map((literal) => literal.trim()).find((each) => !sent.includes(each))
  return missing
    ? `the text lacks "${missing}" of the registered text`
    : 'the text has more than the registered text, or a variable that does not fit its type'
}

/** Where a value that begins at one of these places may end. The places ascend. */
function endsOfValue(text: string, starts: readonly number[], tag: string): number[] {
  const fits = characters.get(tag) ?? /./s
  const max = tag === 'alphanumeric' ? maxAlphanumeric : Number.POSITIVE_INFINITY
  const ends = new Set<number>()
  let reached = 0
  for (const start of starts) {
    unknownValue.lastIndex = start
    if (unknownValue.test(text)) ends.add(unknownValue.lastIndex)
    // An earlier place has reached the same characters.
    for (let at = start; at < text.length && at - start < max && fits.test(text[at] ?? ''); at++) {
      if (at + 1 <= reached) at = reached - 1
      reached = at + 1
      ends.add(reached)
    }
  }
  return [...ends].sort((a, b) => a - b)
}
