/** Plain words: a hurried reader with school English reads each sentence once. */
import { expect, test } from 'vitest'
import { commentsIn, findFiles, readSource, titlesIn } from '../tools/source-files.ts'

/** A pattern that must not occur, and its replacement. Add a row when nothing in the tree matches it. */
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
  [/\bkeeps? away from\b/i, 'skips'],
  [/\bholds? (up|off|back)\b/i, 'delays'],
  [/\bin hand\b/i, 'current work'],
  [/\bworth delivering\b/i, 'remaining time'],
  [/\bin the hands of\b/i, 'which process has claimed or leased it'],
  [/\bbec[ao]me of\b/i, 'the result, the state'],
  [/\b[Oo]ur\b/, "Postern's, this process's, the"],
  [/\bcan not\b/i, 'cannot'],
  [/\block-outs?\b/i, 'lockout'],
  [/\b(behind|before|sends) bulk\b(?! notices?\b)/i, 'bulk notices'],
  [/\bneeds? another secret\b/i, 'a separate secret'],
]

/** Folders where more patterns must not occur. A row moves to the table above when the whole tree is free of it. */
const plainFolders = /^(src\/|web\/|lua\/|docs\/|policies\/|deploy\/|test\/|bench\/|[^/]+$)/
const notUsedThere: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [
    /^(\/\*\*|\/\/|#|['"`])? ?(What|Who|Whose|Whom|Those|Of)\b/,
    'begin with a noun, then what it is or does',
  ],
  [
    /\b(who|what|some|every|any|no)(ever|body)\b/i,
    'the actor: the caller, the operator, a stranger',
  ],
  [/\b([Oo]urs|[Ww]e|[Uu]s)\b/, 'Postern, this process, the API'],
  [/\b(that|those) of\b/i, 'repeat the noun'],
  [/\bof (its|their|our) own\b/i, 'a separate …, or nothing'],
  [/\b(says?|said|tells|told|hears|heard)\b/i, 'returns, reports, logs, stores, sends, gets'],
  [/\b(last|its) word\b/i, 'last answer, report'],
  [/\blook(s|ed|ing)? at\b/i, 'checks, reads'],
  [/\bis over\b/i, 'ended, expired'],
]

/** Only in the product: a test's program in place of a provider is a far end. */
const farEnd = /\bfar ends?\b/i

interface Passage {
  readonly file: string
  readonly line: number
  readonly text: string
}

/** Operators read their comments. */
const settingsFiles = findFiles(
  '{{postern,docker-compose,policies/*,deploy/**/*}.{yaml,yml,cfg,conf,service},deploy/caddy/Caddyfile,.env.example,Dockerfile}',
)

/** Comments of code, titles of tests, pages for readers of English, and the words of messages: strings of two words or more. */
const passages: Passage[] = [
  ...findFiles('{src,web}/**/*.ts')
    .filter((file) => !/\/generated\/|\/dist\//.test(file))
    .flatMap((file) => [
      ...passagesOf(file, commentsIn(readSource(file))),
      ...passagesOf(file, readSource(file).match(/(?<!\w)(['`"])\S+ \S[^\n]*?\1/g) ?? []),
    ]),
  ...passagesOf('src/i18n/en.json', readSource('src/i18n/en.json').match(/"\S+ \S[^\n]*"/g) ?? []),
  ...findFiles('{test,bench}/**/*.ts').flatMap((file) =>
    passagesOf(
      file,
      commentsIn(readSource(file))
        .filter((comment) => /^(\/\*\*|\/\/)/.test(comment))
        .map(withoutCommands),
    ),
  ),
  ...findFiles('test/**/*.test.ts').flatMap((file) => passagesOf(file, titlesIn(readSource(file)))),
  ...findFiles('lua/*.lua').flatMap((file) =>
    passagesOf(file, readSource(file).match(/(^--.*\n)+/gm) ?? []),
  ),
  ...settingsFiles.flatMap((file) =>
    passagesOf(file, readSource(file).match(/(^ *#.*\n)+/gm) ?? []),
  ),
  ...findFiles('{README,CONTRIBUTING,SECURITY,CHANGELOG}.md'),
  ...findFiles('{docs,lua,src}/**/*.md').filter((file) => !file.includes('docs/zh/')),
].flatMap((one) =>
  typeof one === 'string' ? passagesOf(one, paragraphsOf(readSource(one))) : [one],
)

/** Commands in a comment are indented. */
function withoutCommands(comment: string): string {
  return comment.replace(/^ \* {3,}\S.*$/gm, ' *')
}

function passagesOf(file: string, texts: readonly string[]): Passage[] {
  const source = readSource(file)
  return texts.map((raw) => ({
    file,
    line: source.slice(0, source.indexOf(raw)).split('\n').length,
    // A phrase may continue in the next line.
    text: raw.trim().replace(/\s+(\*|\/\/|--|#)?\s*/g, ' '),
  }))
}

/** Without code, which is quoted from elsewhere. */
function paragraphsOf(markdown: string): string[] {
  return markdown.replace(/^ *```[\s\S]*?^ *```$/gm, '').split(/\n{2,}/)
}

const foundIn = (where: readonly Passage[], pattern: RegExp) =>
  where
    .filter(({ text }) => pattern.test(text))
    .map(({ file, line, text }) => `${file}:${line}: ${text}`)

test.each(notUsed)('%s is not used: %s', (pattern) => {
  expect(foundIn(passages, pattern)).toEqual([])
})

const plainPassages = passages.filter(({ file }) => plainFolders.test(file))

test.each(notUsedThere)('%s is not used in the plain folders: %s', (pattern) => {
  expect(plainPassages.length).toBeGreaterThan(1_000)
  expect(foundIn(plainPassages, pattern)).toEqual([])
})

test('a provider is not called a far end in the product', () => {
  const ofProduct = plainPassages.filter(({ file }) => !/^(test|bench)\//.test(file))
  expect(foundIn(ofProduct, farEnd)).toEqual([])
})

const maxSentenceWords = 25
/** Four comments of delivery, providers and upkeep are still longer. */
const isShort = ({ file }: Passage) =>
  plainFolders.test(file) && !/^src\/(delivery|providers|upkeep)\//.test(file)

/** A colon or semicolon also ends a sentence. Pictures are left out. */
const longSentencesIn = (text: string): string[] =>
  text.includes('──')
    ? []
    : text.split(/[.:;?] /).filter((part) => wordsIn(part) > maxSentenceWords)

const wordsIn = (text: string) => text.match(/\S*[\p{L}\d]\S*/gu)?.length ?? 0

test(`no sentence of a comment has more than ${maxSentenceWords} words`, () => {
  const long = passages
    .filter((passage) => isShort(passage) && passage.text.startsWith('/**'))
    .flatMap(({ file, line, text }) =>
      longSentencesIn(text).map((sentence) => `${file}:${line}: ${sentence}`),
    )
  expect(long).toEqual([])
})

test(`no sentence of a title has more than ${maxSentenceWords} words`, () => {
  const long = findFiles('test/**/*.test.ts').flatMap((file) =>
    titlesIn(readSource(file)).flatMap(longSentencesIn),
  )
  expect(long).toEqual([])
})

test('a sentence of 26 words is long, two of 25 are not, and signs are no words', () => {
  const words = (count: number) => Array(count).fill('word').join(' ')
  expect(longSentencesIn(`/** ${words(26)}. */`)).toHaveLength(1)
  expect(longSentencesIn(`/** ${words(25)}; ${words(25)}. → */`)).toEqual([])
})

test('the message of a pattern demands: "must be …", because "is …" could also be the fault', () => {
  const demands = findFiles('src/**/*.ts').flatMap((file) =>
    [...readSource(file).matchAll(/\.regex\([^']*'([^']+)'/g)].map(
      ([, text]) => `${file}: ${text}`,
    ),
  )
  expect(demands.length).toBeGreaterThan(15)
  expect(demands.filter((text) => /: (is|are|has|begins|needs|not) /.test(text))).toEqual([])
})

test('comments, messages, scripts and pages are read, and a phrase over two lines is seen', () => {
  for (const folder of ['src/', 'web/', 'lua/', 'docs/', 'README.md', 'deploy/']) {
    expect(passages.filter(({ file }) => file.startsWith(folder)).length).toBeGreaterThan(3)
  }
  const [passage] = passagesOf('README.md', ['/** A caller that has\n * come late. */'])
  expect(notUsed.some(([pattern]) => pattern.test(passage?.text ?? ''))).toBe(true)
})

/** Names of other rooms, and units. `openForMs` is stored. */
const otherTimes =
  /^(backoff|hour|lockedFor|maxAge|maxWait|minute|nextIn|openFor|spacingPerItem|unit|window)Ms$/

test('a name of a time in src/delivery and src/notice ends in one of the six words of the glossary', () => {
  const [row = ''] = /^\| \*\*time\*\* \|.*/m.exec(readSource('docs/concepts.md')) ?? []
  const words = [...row.matchAll(/(?<!\*)\*(\w+)\*/g)].map(([, word]) => word)
  expect(words).toHaveLength(6)
  const allowed = new RegExp(`^nowMs$|(${words.join('|')})(In|After)?Ms$`, 'i')
  const others = findFiles('src/{delivery,notice}/*.ts').flatMap((file) =>
    (readSource(file).match(/\b[a-zA-Z]+Ms\b/g) ?? [])
      .filter((name) => !allowed.test(name) && !otherTimes.test(name))
      .map((name) => `${file}: ${name}`),
  )
  expect(others).toEqual([])
})
