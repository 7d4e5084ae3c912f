/**
 * HTML by one template tag. Each value is escaped as text, in content and in quoted attributes, unless the tag itself
 * made it. So a page can't forget to escape, and no object from outside can pass for HTML. A list is joined;
 * `undefined`, `null` and `false` become nothing.
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
