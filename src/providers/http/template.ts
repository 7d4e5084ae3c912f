/**
 * Texts of the policy file with variables, such as `Your code: {{code}}`. They are checked at start and filled for each
 * message. A text that is one variable alone has no value if the variable has none, and is then left out. In other texts,
 * such a variable is empty.
 */
import { ownEntry } from '../../base/json.ts'
import type { Message } from '../provider.ts'

/** Returns the value of a variable; undefined if the message has none. */
export type Values = (name: string) => string | undefined

const ofMessage: Readonly<Record<string, (message: Message) => string | undefined>> = {
  to: ({ to }) => to,
  /** The number without `+`. */
  toDigits: ({ to }) => (/^\+\d+$/.test(to) ? to.slice(1) : undefined),
  /** The number without the code of its country. */
  toNational: ({ nationalNumber }) => nationalNumber,
  country: ({ country }) => country || undefined,
  text: ({ text }) => text,
  html: ({ html }) => html,
  subject: ({ subject }) => subject,
  locale: ({ locale }) => locale,
  noticeId: ({ noticeId }) => noticeId,
  template: ({ template }) => template,
  code: ({ variables }) => ownEntry(variables, 'code'),
}

const paramsOf = /^params\.([a-zA-Z][a-zA-Z0-9_]{0,31})$/

export function valuesOf(message: Message, from: string | undefined): Values {
  return (name) => {
    const param = paramsOf.exec(name)?.[1]
    const value =
      param === undefined ? ofMessage[name]?.(message) : ownEntry(message.variables, param)
    // A lone surrogate can't be encoded.
    return (name === 'from' ? from : value)?.toWellFormed()
  }
}

const isVariable = (name: string) =>
  name === 'from' || Object.hasOwn(ofMessage, name) || paramsOf.test(name)

const names = [...Object.keys(ofMessage), 'from', 'params.NAME'].join(' ')

/** A text, cut at its variables: each has the text behind it. */
function cut(text: string) {
  const [before = '', ...rest] = text.split('{{')
  const parts = rest.map((part) => {
    const [name = '', ...after] = part.split('}}')
    return { name: name.trim(), after: after.join('}}'), isClosed: after.length > 0 }
  })
  return { before, parts }
}

export const variablesIn = (text: string): string[] => cut(text).parts.map(({ name }) => name)

/** The reason why a text is no template; undefined for a template. */
export function templateProblem(text: string): string | undefined {
  const { parts } = cut(text)
  if (parts.some(({ isClosed }) => !isClosed)) return 'a {{ has no }}'
  const unknown = parts.find(({ name }) => !isVariable(name))
  return unknown && `there is no variable {{${unknown.name}}}; there are ${names}`
}

/** A function that fills a text. `escaped` makes each value fit the place of the text. */
export function compileText(text: string, escaped: (value: string) => string = (value) => value) {
  const { before, parts } = cut(text)
  const [first] = parts
  const alone = parts.length === 1 && before === '' && first?.after === '' ? first.name : undefined
  return (values: Values): string | undefined => {
    const filled = (name: string) => {
      const value = values(name)
      return value === undefined ? undefined : escaped(value)
    }
    if (alone !== undefined) return filled(alone)
    return before + parts.map(({ name, after }) => (filled(name) ?? '') + after).join('')
  }
}

/** An address drops such parts of its path, and what stands before them. */
export function hasDots(url: string): boolean {
  const [path = ''] = url.split(/[?#]/)
  return path.split('/').some((part) => /^(\.|%2e){1,2}$/i.test(part))
}

/** A function that fills all texts of a tree. Members and items without a value are left out. */
export function compileTree(tree: unknown): (values: Values) => unknown {
  if (typeof tree === 'string') return compileText(tree)
  if (typeof tree !== 'object' || tree === null) return () => tree
  if (Array.isArray(tree)) {
    const items = tree.map(compileTree)
    return (values) => items.map((fill) => fill(values)).filter((item) => item !== undefined)
  }
  const members = Object.entries(tree).map(([name, member]) => [name, compileTree(member)] as const)
  return (values) => Object.fromEntries(members.map(([name, fill]) => [name, fill(values)]))
}

/** All texts in a tree, with their paths. */
export function textsIn(
  tree: unknown,
  path: readonly (string | number)[] = [],
): { path: (string | number)[]; text: string }[] {
  if (typeof tree === 'string') return [{ path: [...path], text: tree }]
  if (typeof tree !== 'object' || tree === null) return []
  const members = Array.isArray(tree) ? [...tree.entries()] : Object.entries(tree)
  return members.flatMap(([key, member]) => textsIn(member, [...path, key]))
}
