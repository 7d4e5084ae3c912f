/**
 * HTML by one template tag. What is put in is text and is escaped, in content and in quoted attributes alike, unless
 * it was made by the tag itself: so a page can't forget to escape, and no object from outside can pass for HTML.
 * Lists are put in one after the other; `undefined`, `null` and `false` leave nothing.
 */
export class Html {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  toString(): string {
    return this.#text
  }
}

export type Part = Html | string | number | undefined | null | false | readonly Part[]

export function html(literals: TemplateStringsArray, ...parts: readonly Part[]): Html {
  const texts = literals.map((literal, at) => literal + textOf(parts[at]))
  return new Html(texts.join(''))
}

function textOf(part: Part): string {
  if (part === undefined || part === null || part === false) return ''
  if (part instanceof Html) return part.toString()
  if (Array.isArray(part)) return part.map(textOf).join('')
  return escaped(String(part))
}

const escaped = (text: string) =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
