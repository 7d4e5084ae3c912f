/**
 * No regular expression in `src` backtracks for longer than its input is long (I21). redos-detector proves it for
 * most of them. The others are listed here, each with the reason why it may stay.
 */
import { isSafe } from 'redos-detector'
import { expect, test } from 'vitest'
import { findSourceFiles, readSource, type SyntaxNode, walkSource } from '../tools/source-files.ts'

const known: Readonly<Record<string, string>> = {
  '/\\{[a-zA-Z_]\\w*\\}/g': "the operator's own keys, and each start is a { of its own",
  '/\\{(\\w+)\\}/g': "the operator's own keys, and each start is a { of its own",
  '/^.*\\) \\S+ /s': 'a line of /proc',
  '/\\bid:\\s*(\\S+?)(?=\\s|sub:|$)/i':
    'each start is a word of its own, the next one ends the spaces, and the end of that word matches',
  '/\\bstat:\\s*([A-Z]{1,20})/i':
    'each start is a word of its own, and the next one ends the spaces',
  '/\\berr:\\s*([0-9a-z]{1,8})\\b/i':
    'each start is a word of its own, and the next one ends the spaces',
  '/^[^\\s"(),:;<>@[\\\\\\]\\p{Cc}]{1,64}@[^\\s"(),:;<>@[\\\\\\]\\p{Cc}]{1,253}$/u':
    "no part takes the @ between them; too many characters for the detector's steps",
  '/^(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+(?!\\d+$)[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$/':
    'at most 253 characters, and no label takes a dot',
  '/^redis(s?)\\+(cluster|sentinel):\\/\\/(?:([^:@/?]*)(?::([^@/?]*))?@)?([^@/?]*)(?:\\/([^?]*))?(?:\\?(.*))?$/':
    "the operator's address, read at the start",
  '/^(?:\\[([^\\]]*)\\]|([^:]*))(?::(\\d+))?$/': "the operator's address, read at the start",
  '/\\{#(\\w{1,32})#\\}|\\$?\\{\\{?\\w{1,32}\\}?\\}/g':
    "the operator's registered text, and at most 34 characters from a start",
  '/\\{#\\w{1,32}#\\}|\\$?\\{\\{?\\w{1,32}\\}?\\}/':
    "the operator's registered text, and at most 34 characters from a start",
  '/\\+\\d[\\d ().-]{6,18}\\d|(?<![\\w.-])0[\\d ()-]{7,18}\\d|\\b\\d{3}[ -]\\d{3}[ -]\\d{4}\\b/':
    'at most 20 characters from a start',
  '/\\n{1,9}@[a-z0-9.-]{1,253} #\\S{1,64}(?: @[a-z0-9.-]{1,253})?$/i':
    'each start is a line, and no part takes the space between them',
}

interface PatternNode extends SyntaxNode {
  readonly regex?: { readonly pattern: string; readonly flags: string }
  readonly callee?: { readonly name?: string }
}

/** The patterns in a source, and the number of patterns made at run time. */
function patternsIn(source: string): { literals: RegExp[]; made: number } {
  const literals: RegExp[] = []
  let made = 0
  walkSource(source, undefined, (node) => {
    const { regex, callee } = node as PatternNode
    if (regex) literals.push(new RegExp(regex.pattern, regex.flags))
    if (callee?.name === 'RegExp') made++
    return undefined
  })
  return { literals, made }
}

const isLinear = (pattern: RegExp) => isSafe(pattern).safe

test('every pattern in src is linear, or stands here with its reason', () => {
  const found = findSourceFiles().flatMap((file) =>
    patternsIn(readSource(file)).literals.map((pattern) => ({ file, pattern })),
  )
  expect(found.length).toBeGreaterThan(50)
  const doubtful = found.filter(
    ({ pattern }) => !Object.hasOwn(known, String(pattern)) && !isLinear(pattern),
  )
  expect(doubtful.map(({ file, pattern }) => `${file}: ${pattern}`)).toEqual([])
  // A reason that no pattern needs would hide the next pattern with the same text.
  const used = new Set(found.map(({ pattern }) => String(pattern)))
  expect(Object.keys(known).filter((pattern) => !used.has(pattern))).toEqual([])
})

/** Patterns made at run time can't be read here. */
const making: Readonly<Record<string, string>> = {
  'src/recipient/phone-number.ts': 'of numbering plans, over fifteen digits at most',
  'src/sms-rules/schema.ts': 'of the data, to see if they can be read',
  'src/sms-rules/sender-name.ts': 'of the data, over a sender',
  'src/sms-rules/text-parts.ts': 'of the lists and words there, with bounds, over one SMS',
  'src/storage/redis-ready.ts': 'of names of ours, over what Redis says of itself',
}

test('patterns are made at run time only where it stands here', () => {
  const files = findSourceFiles().filter((file) => patternsIn(readSource(file)).made > 0)
  expect(files).toEqual(Object.keys(making))
})

test.each([
  // The earlier pattern for Accept-Language, which could stop the service.
  /^\s*(en|zh)(?:-[a-z0-9-]+)?\s*(?:;\s*q=([01](?:\.\d{0,3})?))?\s*$/,
  /(a+)+$/,
  /\s+$/,
  /^[a-z]+\.?[a-z]*$/,
])('%s is seen', (pattern) => {
  expect(isLinear(pattern)).toBe(false)
})

test('a pattern is found wherever it stands, and a division is none', () => {
  const source = `
    const half = (size: number) => size / 2 / 1
    export class A<T> { private x = /a+a+$/u as unknown as T; f() { return \`\${'x'.match(/b/)}\` } }
    const made = [RegExp('a'), new RegExp('b')]`
  expect(patternsIn(source.replace('private ', ''))).toEqual({ literals: [/a+a+$/u, /b/], made: 2 })
})
