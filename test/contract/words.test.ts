/** Plain words: a reader with school English, in a hurry, reads each sentence once. */
import { expect, test } from 'vitest'
import { commentsIn, findFiles, readSource } from '../tools/source-files.ts'

/** A pattern that is not used, and what stands in its place. Add a row once nothing in the tree matches it. */
const notUsed: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/\bnone of ours\b/i, 'name the thing: "not a Postern value"'],
  [/\b(has|have) come\b/i, 'arrived'],
  [/\bcomes? to nothing\b/i, 'fails'],
  [/\bone more\b/i, 'repeat the noun: "another call"'],
  [/\bthat of those\b/i, 'repeat the noun'],
  [/\bthe other's\b/i, 'repeat the noun'],
  [/\bhas a word for\b/i, 'reports, returns'],
  [/\bwhich is why\b/i, 'the reason as a sentence of its own'],
  [/\bbecause otherwise\b/i, 'Otherwise … as a sentence of its own'],
  [/\bnot unless\b/i, 'the positive: only if'],
  [/\ball the same\b/i, 'still, also'],
  [/\bno one\b/i, 'the actor: the caller, the operator'],
  [/\bmessage rows?\b/i, 'notice'],
  [/\bOTPs?\b/, 'code'],
]

interface Passage {
  readonly file: string
  readonly line: number
  readonly text: string
}

/** Comments of code, pages for readers of English, and the words of messages: strings of two words or more. */
const passages: Passage[] = [
  ...findFiles('{src,web}/**/*.ts')
    .filter((file) => !/\/generated\/|\/dist\//.test(file))
    .flatMap((file) => [
      ...passagesOf(file, commentsIn(readSource(file))),
      ...passagesOf(file, readSource(file).match(/(?<!\w)(['`"])\S+ \S[^\n]*?\1/g) ?? []),
    ]),
  ...findFiles('lua/*.lua').flatMap((file) =>
    passagesOf(file, readSource(file).match(/(^--.*\n)+/gm) ?? []),
  ),
  ...findFiles('{README,CONTRIBUTING,SECURITY}.md'),
  ...findFiles('{docs,lua,src}/**/*.md').filter((file) => !file.includes('docs/zh/')),
].flatMap((one) =>
  typeof one === 'string' ? passagesOf(one, paragraphsOf(readSource(one))) : [one],
)

function passagesOf(file: string, texts: readonly string[]): Passage[] {
  const source = readSource(file)
  return texts.map((raw) => ({
    file,
    line: source.slice(0, source.indexOf(raw)).split('\n').length,
    // A phrase may go on in the next line.
    text: raw.replace(/\s+(\*|\/\/|--)?\s*/g, ' '),
  }))
}

/** Without code, which is quoted from elsewhere. */
function paragraphsOf(markdown: string): string[] {
  return markdown.replace(/^ *```[\s\S]*?^ *```$/gm, '').split(/\n{2,}/)
}

test.each(notUsed)('%s is not used: %s', (pattern) => {
  const found = passages.filter(({ text }) => pattern.test(text))
  expect(found.map(({ file, line, text }) => `${file}:${line}: ${text}`)).toEqual([])
})

test('comments, messages, scripts and pages are read, and a phrase over two lines is seen', () => {
  for (const folder of ['src/', 'web/', 'lua/', 'docs/', 'README.md']) {
    expect(passages.filter(({ file }) => file.startsWith(folder)).length).toBeGreaterThan(3)
  }
  const [passage] = passagesOf('README.md', ['/** A caller that has\n * come late. */'])
  expect(notUsed.some(([pattern]) => pattern.test(passage?.text ?? ''))).toBe(true)
})
