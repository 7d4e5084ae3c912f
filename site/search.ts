/**
 * The search of the site. The theme sends these functions to the browser as text, so none of them may use variables
 * from outside.
 */

/**
 * The words of a text. Chinese is written without spaces, so each pair of neighbouring characters is a word: 验证码
 * becomes 验证 and 证码. The index and the typed text use the same words.
 */
export const wordsOf = (text: string): string[] =>
  text
    .split(/[\n\r\p{Z}\p{P}]+/u)
    .flatMap((part) => part.match(/\p{Script=Han}+|[^\p{Script=Han}]+/gu) ?? [])
    .flatMap((part) =>
      /\p{Script=Han}/u.test(part) && part.length > 2
        ? Array.from({ length: part.length - 1 }, (_, at) => part.slice(at, at + 2))
        : [part],
    )

/**
 * Guides come first in the results, because a reader wants a page about the subject. Pages for developers and lists
 * made from the code come last.
 */
export const weightOf = (id: string, _word: string, stored?: Record<string, unknown>): number => {
  const isInside =
    /\/(performance|benchmark|invariants|testing|decisions\/|reference\/|comparison)/.test(id)
  const isWholePage = (stored?.titles as readonly string[] | undefined)?.length === 0
  return (isInside ? 0.3 : 1) * (isWholePage ? 3 : 1)
}

/** Allowed typing errors: one in a word of seven letters or more, so that `passkeys` does not find `passes`. */
const errorsIn = (word: string) => (word.length > 6 ? 1 : false)

export const miniSearch = {
  options: { tokenize: wordsOf },
  searchOptions: {
    boost: { title: 8, titles: 2, text: 1 },
    combineWith: 'AND' as const,
    fuzzy: errorsIn,
    boostDocument: weightOf,
  },
}
